// The outline: modules and functions as a tree, with their shares of the arithmetic.

import type { App } from "../app";
import { h, refill } from "../dom";
import { flops, bytes, plural } from "../format";

export class Outline {
  readonly element = h("aside.outline", { "aria-label": "modules and functions" });
  private readonly folded = new Set<number>();
  private drawn = "";

  constructor(private readonly app: App) {
    // A long tree starts with its first two levels open.
    if (app.doc.groups.length > 60) {
      app.doc.groups.forEach((_, id) => {
        if (app.model.path(id).length > 2) this.folded.add(id);
      });
    }
  }

  show(): void {
    const { selection, doc } = this.app;
    const chosen =
      selection?.kind === "group"
        ? selection.id
        : selection?.kind === "instruction"
          ? doc.instructions[selection.id].group
          : -1;
    const state = `${this.app.stage} ${chosen} ${[...this.folded].join()}`;
    if (state === this.drawn || !doc.stages.length) return;
    this.drawn = state;
    refill(this.element, h("h3", {}, "Modules and functions"), this.branch(0, chosen, 0));
    this.element.querySelector(".on")?.scrollIntoView({ block: "nearest" });
  }

  private branch(id: number, chosen: number, depth: number): HTMLElement {
    const { model, stage } = this.app;
    const totals = model.totals(stage)[id];
    const whole = model.totals(stage)[0];
    const inner = model.children[id].filter((child) => model.totals(stage)[child].instructions);
    const folded = this.folded.has(id);
    const amount = whole.flops ? flops(totals.flops) : bytes(totals.read + totals.written);
    const share = whole.flops ? totals.flops / whole.flops : 0;
    const fold = (event: Event) => {
      event.stopPropagation();
      if (folded) this.folded.delete(id);
      else this.folded.add(id);
      this.drawn = "";
      this.show();
    };
    const kind = model.doc.groups[id].class ?? "";
    const row = h(
      `button.leaf${id === chosen ? ".on" : ""}`,
      {
        click: () => this.app.select({ kind: "group", id }),
        style: `padding-left:${8 + depth * 13}px`,
        title: `${plural(totals.instructions, "instruction")}, ${amount}`,
        "data-group": id,
      },
      inner.length ? h(`span.fold${folded ? ".shut" : ""}`, { click: fold }, "▾") : h("span.fold"),
      h("span.name", {}, model.label(id), kind ? h("i", {}, kind) : null),
      h("span.meter", {}, h("span", { style: `width:${Math.max(0, 100 * share).toFixed(1)}%` })),
    );
    return h("div", {}, row, ...(folded ? [] : inner.map((child) => this.branch(child, chosen, depth + 1))));
  }
}
