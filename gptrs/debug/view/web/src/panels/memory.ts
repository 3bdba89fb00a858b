// Memory over time: the arena as a map (offset by step), and the bytes in use above it.

import { scaleLinear } from "d3-scale";

import type { App } from "../app";
import { h, refill, s } from "../dom";
import { bytes, percent } from "../format";
import { tone } from "../model";

const CURVE = 90;
const GAP = 30;
const LEFT = 74;

export class MemoryPanel {
  private readonly svg = s("svg.memory", { "aria-label": "arena over the steps" }) as SVGSVGElement;
  readonly element: HTMLElement;

  constructor(private readonly app: App) {
    const { plan } = app.doc;
    const head = h("header.chart-head", {}, h("strong", {}, "Memory"));
    this.element = h("section.panel.memory-panel", { "data-panel": "memory", hidden: true }, head);
    if (!plan) {
      this.element.append(h("p.empty", {}, "There is no plan: the lowering ended before it."));
      return;
    }
    const sum = plan.arena.reduce((total, each) => total + each.bytes, 0);
    const saved = sum > plan.arena_bytes ? `, ${percent(sum - plan.arena_bytes, sum)} less than without reuse` : "";
    head.append(h("span", {}, `arena ${bytes(plan.arena_bytes)}${saved} · weights ${bytes(plan.parameter_bytes)} · results ${bytes(plan.result_bytes)}`));
    this.element.append(plan.arena.length ? h("div.chart.tall", {}, this.svg) : h("p.empty", {}, "This plan has no intermediate arrays."), this.weights());
    this.svg.addEventListener("click", (event) => {
      const at = (event.target as Element).closest("[data-value]");
      if (at) this.choose(Number(at.getAttribute("data-value")));
    });
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  private choose(value: number): void {
    const maker = this.makers().get(value);
    this.app.select(maker === undefined ? { kind: "value", id: value } : { kind: "instruction", id: maker });
  }

  private makers(): Map<number, number> {
    return this.app.model.index(this.app.doc.stages.length - 1).maker;
  }

  private weights(): Node {
    const { plan } = this.app.doc;
    const forms = [...plan!.parameters].sort((a, b) => b.bytes - a.bytes);
    const largest = Math.max(1, ...forms.map((form) => form.bytes));
    const rows = forms.slice(0, 400).map((form) =>
      h("div.step-row", {}, h("b", {}, form.name), h("span.note", {}, form.form), h("span.meter", {}, h("span", { style: `width:${((100 * form.bytes) / largest).toFixed(1)}%` })), h("span.ns", {}, bytes(form.bytes))),
    );
    return h("div.steps.weights", {}, h("h3", {}, "Weights in memory"), ...(rows.length ? rows : [h("p.none", {}, "none")]));
  }

  show(): void {
    if (!this.element.hidden) this.draw();
  }

  private draw(): void {
    const { plan } = this.app.doc;
    const { clientWidth: width, clientHeight: height } = this.svg;
    if (!plan || !width || !height) return;
    const steps = plan.steps.length;
    const x = scaleLinear([0, steps], [LEFT, width - 12]);
    const y = scaleLinear([0, plan.arena_bytes || 1], [CURVE + GAP, height - 26]);
    const parts: Node[] = [...this.curve(x, steps), ...this.axes(x, y, height)];
    const makers = this.makers();
    const { selection, doc } = this.app;
    for (const each of plan.arena) {
      const value = each.values[0];
      if (value === undefined) continue;
      const maker = makers.get(value);
      const color = maker === undefined ? "other" : tone(doc.instructions[maker].kind);
      const chosen = selection?.kind === "instruction" ? each.values.some((v) => makers.get(v) === selection.id) : selection?.kind === "step" && each.first === selection.id;
      const left = x(each.first);
      const size = Math.max(1.5, x(each.last + 1) - left - 1);
      const tall = Math.max(1, y(each.offset + each.bytes) - y(each.offset) - 1);
      const names = each.values.map((v) => doc.values[v].name).join(", ");
      const title = s("title", {}, `${names}  ${doc.values[value].type}  ${bytes(each.bytes)} at ${bytes(each.offset)}, steps ${each.first} to ${each.last}`);
      const words = size > 44 && tall > 13 ? s("text", { x: left + 5, y: y(each.offset) + 12 }, names.slice(0, Math.floor((size - 8) / 6.6))) : null;
      parts.push(s("g", { class: `block ${color}${chosen ? " chosen" : ""}`, "data-value": value }, title, s("rect", { x: left, y: y(each.offset), width: size, height: tall, rx: 2 }), words));
    }
    refill(this.svg, ...parts);
  }

  /** The bytes in use at each step. */
  private curve(x: (n: number) => number, steps: number): Node[] {
    const change = new Array<number>(steps + 1).fill(0);
    for (const { first, last, bytes: size } of this.app.doc.plan!.arena) {
      change[first] += size;
      change[last + 1] -= size;
    }
    let live = 0;
    const use = change.map((each) => (live += each));
    const most = Math.max(1, ...use);
    const y = scaleLinear([0, most], [CURVE, 14]);
    let path = `M${x(0)},${CURVE}`;
    for (let n = 0; n < steps; n++) path += `V${y(use[n])}H${x(n + 1)}`;
    const peak = use.indexOf(most);
    return [
      s("path.use", { d: `${path}V${CURVE}Z` }),
      s("text.tick", { x: 8, y: 20 }, bytes(most)),
      s("text.tick", { x: 8, y: CURVE }, "in use"),
      s("circle.peak", { cx: (x(peak) + x(peak + 1)) / 2, cy: y(most), r: 3 }, s("title", {}, `the most, ${bytes(most)}, at step ${peak}`)),
    ];
  }

  private axes(x: ReturnType<typeof scaleLinear<number>>, y: ReturnType<typeof scaleLinear<number>>, height: number): Node[] {
    const parts: Node[] = [];
    for (const tick of y.ticks(5)) {
      parts.push(s("line.tick", { x1: LEFT, x2: x.range()[1], y1: y(tick), y2: y(tick) }), s("text.tick", { x: 8, y: y(tick) + 4 }, bytes(tick)));
    }
    for (const tick of x.ticks(8).filter(Number.isInteger)) {
      parts.push(s("text.tick", { x: x(tick) + 2, y: height - 8 }, tick === 0 ? "step 0" : String(tick)));
    }
    return parts;
  }
}
