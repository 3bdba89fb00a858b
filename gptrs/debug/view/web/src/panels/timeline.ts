// The plan as a timeline: a row for each level of modules, then the steps. Times are estimates on
// one thread until they were measured.

import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity, type ZoomTransform } from "d3-zoom";

import type { App } from "../app";
import { h, refill, s } from "../dom";
import { percent, plural, time } from "../format";
import { tone } from "../model";
import type { Listing } from "./listing";

interface Bar {
  row: number;
  start: number;
  end: number;
  label: string;
  classes: string;
  step: number;
  group: number;
}

const ROW = 26;
const AXIS = 26;

export class TimelinePanel {
  private readonly svg = s("svg.bars", { tabindex: 0, "aria-label": "steps over time" }) as SVGSVGElement;
  private readonly table = h("div.steps");
  readonly element: HTMLElement;
  private readonly bars: Bar[] = [];
  private readonly starts: number[] = [];
  private rows = 1;
  private whole = 0;
  private transform: ZoomTransform = zoomIdentity;
  private readonly zooming = zoom<SVGSVGElement, unknown>().scaleExtent([1, 4000]);
  private sorted = false;

  constructor(
    private readonly app: App,
    private readonly listing: Listing,
  ) {
    const { plan, measured } = app.doc;
    const note = measured ? `measured, ${plural(measured.runs, "run")}` : "estimated, on one thread";
    const sort = h("button", { click: () => this.sort() }, "longest first");
    const head = h("header.chart-head", {}, h("strong", {}, "Timeline"), h("span", {}, note), sort);
    this.element = h("section.panel.timeline-panel", { "data-panel": "timeline", hidden: true }, head);
    if (!plan) {
      this.element.append(h("p.empty", {}, "There is no plan: the lowering ended before it."));
      return;
    }
    this.element.append(h("div.chart", {}, this.svg), this.table);
    this.prepare();
    this.zooming.on("zoom", (event) => {
      this.transform = event.transform;
      this.draw();
    });
    select(this.svg).call(this.zooming).on("dblclick.zoom", () => select(this.svg).call(this.zooming.transform, zoomIdentity));
    this.svg.addEventListener("click", (event) => this.click(event));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  private duration(step: number): number {
    const { plan, measured } = this.app.doc;
    const found = measured?.steps.find((each) => each.step === step);
    return found ? found.ns : plan!.steps[step].ns;
  }

  /** Bars of the steps, and above them of the modules that consecutive steps are of. */
  private prepare(): void {
    const { doc, model } = this.app;
    const steps = doc.plan!.steps;
    const least = steps.reduce((sum, _, n) => sum + this.duration(n), 0) / 4000; // views are visible
    const open: Bar[] = [];
    let at = 0;
    const paths = steps.map((step) => (step.members.length ? model.path(doc.instructions[step.members[step.members.length - 1]].group).slice(1) : []));
    const depth = Math.max(0, ...paths.map((path) => path.length));
    steps.forEach((step, n) => {
      const length = Math.max(this.duration(n), least);
      this.starts.push(at);
      const path = paths[n];
      for (let level = 0; level < depth; level++) {
        const group = path[level];
        const current = open[level];
        if (current && current.group === group && current.end === at) current.end = at + length;
        else if (group !== undefined) {
          open[level] = { row: level, start: at, end: at + length, label: model.label(group), classes: `module level${level % 3}`, step: -1, group };
          this.bars.push(open[level]);
        }
      }
      const members = step.members.map((id) => doc.instructions[id]);
      const heaviest = members.reduce((a, b) => (b && (!a || b.flops > a.flops) ? b : a), members[0]);
      const color = heaviest ? tone(heaviest.kind) : "other";
      const name = step.name.split(".").length > 3 ? step.name.split(".")[2] : step.name.replace(/_[0-9a-f]{8,}$/, "");
      this.bars.push({ row: depth, start: at, end: at + length, label: name, classes: `step ${color}`, step: n, group: -1 });
      at += length;
    });
    this.rows = depth + 1;
    this.whole = at;
    this.svg.setAttribute("height", String(AXIS + this.rows * ROW + 8));
    this.zooming.translateExtent([[0, 0], [1e9, 0]]);
  }

  show(): void {
    if (!this.app.doc.plan || this.element.hidden) return;
    this.draw();
    this.drawTable();
  }

  private draw(): void {
    const width = this.svg.clientWidth;
    if (!width) return;
    this.zooming.translateExtent([[0, 0], [width, 0]]).extent([[0, 0], [width, 0]]);
    const x = this.transform.rescaleX(scaleLinear([0, this.whole], [0, width]));
    const parts: Node[] = [];
    for (const tick of x.ticks(Math.max(2, Math.floor(width / 110)))) {
      parts.push(s("line.tick", { x1: x(tick), x2: x(tick), y1: AXIS - 6, y2: AXIS + this.rows * ROW }));
      parts.push(s("text.tick", { x: x(tick) + 4, y: AXIS - 10 }, time(tick)));
    }
    const { selection } = this.app;
    for (const bar of this.bars) {
      const left = Math.max(-2, x(bar.start));
      const right = Math.min(width + 2, x(bar.end));
      if (right < 0 || left > width || right - left < 0.3) continue;
      const chosen = (selection?.kind === "step" && selection.id === bar.step) || (selection?.kind === "group" && selection.id === bar.group) || this.runsSelection(bar.step);
      const y = AXIS + bar.row * ROW;
      const size = right - left;
      const words = size > 30 ? s("text", { x: Math.max(left, 0) + 6, y: y + 16 }, short(bar.label, Math.min(size, right) - 10)) : null;
      const title = s("title", {}, `${bar.label}  ${time(bar.end - bar.start)}  ${percent(bar.end - bar.start, this.whole)}`);
      const data = bar.step >= 0 ? { "data-step": bar.step } : { "data-group": bar.group };
      parts.push(s("g", { class: `bar ${bar.classes}${chosen ? " chosen" : ""}`, ...data }, title, s("rect", { x: left, y, width: Math.max(1, size - 1), height: ROW - 3, rx: 4 }), words));
    }
    refill(this.svg, ...parts);
  }

  private runsSelection(step: number): boolean {
    const { selection, model } = this.app;
    return step >= 0 && selection?.kind === "instruction" && model.steps(selection.id).includes(step);
  }

  private click(event: MouseEvent): void {
    const bar = (event.target as Element).closest("[data-step],[data-group]");
    if (!bar) return;
    const step = bar.getAttribute("data-step");
    if (step !== null) this.app.select({ kind: "step", id: Number(step) });
    else this.app.select({ kind: "group", id: Number(bar.getAttribute("data-group")) });
  }

  private key(event: KeyboardEvent): void {
    const { selection, doc } = this.app;
    const at = selection?.kind === "step" ? selection.id : -1;
    const last = doc.plan!.steps.length - 1;
    if (event.key === "ArrowRight") this.app.select({ kind: "step", id: Math.min(last, at + 1) });
    else if (event.key === "ArrowLeft") this.app.select({ kind: "step", id: Math.max(0, at - 1) });
    else if (event.key === "Enter" && at >= 0) this.listing.open(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  zoomBy(factor: number): void {
    select(this.svg).call(this.zooming.scaleBy, factor);
  }

  fit(): void {
    select(this.svg).call(this.zooming.transform, zoomIdentity);
  }

  private sort(): void {
    this.sorted = !this.sorted;
    this.element.querySelector(".chart-head button")!.classList.toggle("on", this.sorted);
    this.drawTable();
  }

  private drawTable(): void {
    const { doc, selection } = this.app;
    const steps = doc.plan!.steps.map((step, n) => ({ step, n, ns: this.duration(n) }));
    if (this.sorted) steps.sort((a, b) => b.ns - a.ns);
    const longest = Math.max(1, ...steps.map(({ ns }) => ns));
    const rows = steps.slice(0, 1500).map(({ step, n, ns }) => {
      const chosen = (selection?.kind === "step" && selection.id === n) || this.runsSelection(n);
      return h(
        `button.step-row${chosen ? ".on" : ""}`,
        { click: () => this.app.select({ kind: "step", id: n }), dblclick: () => this.listing.open(n), "data-row": n },
        h("span.n", {}, n),
        h("span.kind", {}, step.kind),
        h("b", {}, step.name),
        h("code", {}, step.result),
        h("span.note", {}, step.note),
        h("span.meter", {}, h("span", { style: `width:${((100 * ns) / longest).toFixed(1)}%` })),
        h("span.ns", {}, step.kind === "view" ? "—" : time(ns)),
      );
    });
    refill(this.table, ...rows);
    this.table.querySelector(".on")?.scrollIntoView({ block: "nearest" });
  }
}

function short(text: string, room: number): string {
  const most = Math.floor(room / 6.6);
  return most >= text.length ? text : most < 3 ? "" : `${text.slice(0, most - 1)}…`;
}
