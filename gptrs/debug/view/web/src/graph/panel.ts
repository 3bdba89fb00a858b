// The graph panel: a stage's hierarchy with what is open, the stages to go through, keys to walk.

import type { App } from "../app";
import { h, refill } from "../dom";
import { plural, time } from "../format";
import { Drawing } from "./draw";
import { Hierarchy, canOpen, isPort, type GraphNode } from "./hierarchy";
import { Layouts } from "./layout";

const SMALL = 45; // instructions of a program that is opened whole
const MOST_OPEN = 6000; // instructions that "open all" may show

export class GraphPanel {
  readonly element: HTMLElement;
  private readonly drawing: Drawing;
  private readonly steps = h("div.stages", { role: "tablist", "aria-label": "passes" });
  private readonly opened = new Set<string>();
  private readonly hierarchies = new Map<number, Hierarchy>();
  private readonly layouts = new Map<number, Layouts>();
  private shown = -1;

  constructor(private readonly app: App) {
    this.drawing = new Drawing({
      select: (node) => this.pick(node),
      toggle: (node) => this.toggle(node),
      marks: (node) => this.marks(node),
    });
    const button = (text: string, title: string, click: () => void) => h("button", { title, click, "aria-label": title }, text);
    const tools = h(
      "div.tools",
      {},
      button("+", "zoom in (+)", () => this.drawing.zoomBy(1.3)),
      button("−", "zoom out (−)", () => this.drawing.zoomBy(1 / 1.3)),
      button("⤢", "fit (0)", () => this.drawing.fit()),
      button("⊞", "open all (e)", () => this.openAll()),
      button("⊟", "close all (c)", () => this.closeAll()),
    );
    this.element = h("section.panel.graph-panel", { "data-panel": "graph" }, this.steps, h("div.canvas", {}, this.drawing.svg, tools));
    this.drawing.svg.addEventListener("keydown", (event) => this.key(event));
    this.opened.add("group0");
  }

  private get stage(): number {
    return this.app.stage;
  }

  private get hierarchy(): Hierarchy {
    let found = this.hierarchies.get(this.stage);
    if (!found) this.hierarchies.set(this.stage, (found = new Hierarchy(this.app.model, this.stage)));
    return found;
  }

  private get layout(): Layouts {
    let found = this.layouts.get(this.stage);
    if (!found) this.layouts.set(this.stage, (found = new Layouts(this.opened)));
    return found;
  }

  /** Draw the app's stage and selection. */
  show(): void {
    if (!this.app.doc.stages.length) {
      refill(this.element, h("p.empty", {}, "Nothing was traced."));
      return;
    }
    if (this.shown !== this.stage) {
      const first = this.shown < 0;
      this.shown = this.stage;
      const { doc } = this.app;
      if (first && doc.stages[this.stage].body.length <= SMALL) this.openDeep(this.hierarchy.root);
      if (first) this.openOnly(this.hierarchy.root);
      this.drawStages();
      this.layouts.delete(this.stage);
      this.drawing.update(this.hierarchy.root, this.layout);
      if (first) requestAnimationFrame(() => this.drawing.fit());
    }
    this.showSelection();
  }

  /** Where a container has one child, open that too. */
  private openOnly(node: GraphNode): void {
    const inner = node.children.filter(canOpen);
    const leaves = node.children.filter((c) => c.kind === "op" && !canOpen(c)).length;
    if (inner.length === 1 && leaves <= 4) {
      this.opened.add(inner[0].key);
      this.openOnly(inner[0]);
    }
  }

  private openDeep(node: GraphNode): void {
    if (canOpen(node)) this.opened.add(node.key);
    node.children.forEach((child) => this.openDeep(child));
  }

  openAll(): void {
    if (this.app.doc.stages[this.stage].body.length > MOST_OPEN) return;
    this.openDeep(this.hierarchy.root);
    this.redraw();
    this.drawing.fit();
  }

  closeAll(): void {
    this.opened.clear();
    this.opened.add("group0");
    this.redraw();
    this.drawing.fit();
  }

  private redraw(): void {
    this.layouts.clear();
    this.drawing.update(this.hierarchy.root, this.layout);
    this.showSelection(false);
  }

  private toggle(node: GraphNode): void {
    this.layout.toggle(node, !this.opened.has(node.key));
    const layout = this.layout;
    this.layouts.clear(); // other stages have the same containers open
    this.layouts.set(this.stage, layout);
    this.drawing.update(this.hierarchy.root, layout, node);
  }

  private drawStages(): void {
    const { stages } = this.app.doc;
    const buttons = stages.map((stage, n) => {
      const rules = (stage.rules ?? []).map(({ rule, count }) => (count > 1 ? `${rule} ×${count}` : rule));
      const title = [stage.ms === undefined ? "" : time(stage.ms * 1e6), ...rules.slice(0, 12)].filter(Boolean).join("\n");
      const attributes = { role: "tab", title, "aria-selected": n === this.stage, click: () => this.app.setStage(n) };
      return h(`button.stage${n === this.stage ? ".on" : ""}`, attributes, stage.name.replaceAll("_", " "), h("small", {}, String(stage.body.length)));
    });
    refill(this.steps, ...buttons);
    this.steps.querySelector(".on")?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }

  private nodeOfSelection(): GraphNode | null {
    const { selection, model } = this.app;
    const { ops, groups, values } = this.hierarchy;
    if (selection?.kind === "instruction") return ops.get(selection.id) ?? ops.get(model.top(selection.id)) ?? null;
    if (selection?.kind === "group") return groups.get(selection.id) ?? null;
    if (selection?.kind === "value") return values.get(selection.id) ?? null;
    if (selection?.kind === "step") {
      const members = this.app.doc.plan!.steps[selection.id].members;
      return members.map((id) => ops.get(id)).find((node) => node !== undefined) ?? null;
    }
    return null;
  }

  private showSelection(reveal = true): void {
    const node = this.nodeOfSelection();
    if (node && reveal) this.uncover(node);
    this.drawing.choose(node);
    if (node && reveal) this.drawing.reveal(node);
  }

  /** Open what a node is in. */
  private uncover(node: GraphNode): void {
    let changed = false;
    for (let n = node.parent; n; n = n.parent) {
      if (this.opened.has(n.key)) continue;
      this.opened.add(n.key);
      changed = true;
    }
    if (changed) {
      this.layouts.clear();
      this.drawing.update(this.hierarchy.root, this.layout);
    }
  }

  private pick(node: GraphNode | null): void {
    if (!node) this.app.select(null);
    else if (node.kind === "op" || node.kind === "region") this.app.select({ kind: "instruction", id: node.id });
    else if (node.kind === "group") this.app.select({ kind: "group", id: node.id });
    else if (node.kind === "chunk") this.toggle(node);
    else this.app.select({ kind: "value", id: node.id });
  }

  /** Which ops the next pass takes away, and which this one brought. */
  private marks(node: GraphNode): string {
    if (node.kind !== "op") return "";
    const { stages } = this.app.doc;
    const has = (n: number) => this.app.bodyOf(n).has(node.id) || this.app.doc.instructions[node.id].parent !== undefined;
    const fresh = this.stage > 0 && !has(this.stage - 1) ? "fresh" : "";
    const gone = this.stage + 1 < stages.length && !has(this.stage + 1) ? " gone" : "";
    return fresh + gone;
  }

  private key(event: KeyboardEvent): void {
    const node = this.nodeOfSelection();
    const go = (next: GraphNode | undefined) => next && this.pick(next);
    switch (event.key) {
      case "Enter":
      case " ":
        if (node && canOpen(node)) this.toggle(node);
        break;
      case "ArrowDown":
        go(node ? this.neighbour(node, "to") : this.hierarchy.root.children[0]);
        break;
      case "ArrowUp":
        go(node ? this.neighbour(node, "from") : undefined);
        break;
      case "ArrowLeft":
      case "ArrowRight":
        go(node ? this.sibling(node, event.key === "ArrowLeft" ? -1 : 1) : undefined);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private neighbour(node: GraphNode, side: "from" | "to"): GraphNode | undefined {
    const other = side === "to" ? "from" : "to";
    const edges = [...(node.parent?.edges.values() ?? [])].filter((edge) => edge[other] === node);
    const found = edges.map((edge) => edge[side]).find((next) => !isPort(next) && next.kind !== "chunk");
    return found ?? (node.parent?.parent ? node.parent : undefined);
  }

  private sibling(node: GraphNode, step: number): GraphNode | undefined {
    const row = (node.parent?.children ?? []).filter((child) => !isPort(child) && child.kind !== "chunk");
    return row[(row.indexOf(node) + step + row.length) % row.length];
  }

  fit(): void {
    this.drawing.fit();
  }

  zoomBy(factor: number): void {
    this.drawing.zoomBy(factor);
  }

  focus(): void {
    this.drawing.svg.focus();
  }

  get summary(): string {
    return plural(this.app.doc.stages[this.stage].body.length, "instruction");
  }
}
