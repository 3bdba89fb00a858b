// Passes: the program before and after each, side by side, and what the rules did.

import { diffArrays } from "diff";

import type { App } from "../app";
import { h, refill } from "../dom";
import { plural, time } from "../format";
import { code } from "./code";

const AROUND = 2; // unchanged lines shown beside changed ones
const MOST_ROWS = 3000;

interface Row {
  before?: number;
  after?: number;
}

export class PassesPanel {
  private readonly list = h("nav.pass-list", { "aria-label": "passes" });
  private readonly diff = h("div.diff", { tabindex: 0 });
  readonly element = h("section.panel.passes-panel", { "data-panel": "passes", hidden: true }, this.list, this.diff);
  private drawn = "";
  private whole = false;

  constructor(private readonly app: App) {}

  show(): void {
    const { doc, stage } = this.app;
    const state = `${stage} ${this.whole}`;
    if (state === this.drawn || !doc.stages.length) return;
    this.drawn = state;
    this.drawList();
    this.drawDiff();
  }

  private drawList(): void {
    const { doc, stage } = this.app;
    const entries = doc.stages.map((each, n) => {
      const change = n === 0 ? `${each.body.length}` : `${doc.stages[n - 1].body.length} → ${each.body.length}`;
      const rules = (each.rules ?? []).slice(0, 40).map(({ rule, count }) => h("span.rule", {}, rule, count > 1 ? h("b", {}, ` ×${count}`) : null));
      return h(
        `button.pass${n === stage ? ".on" : ""}`,
        { click: () => this.app.setStage(n), "aria-current": n === stage },
        h("strong", {}, each.name.replaceAll("_", " ")),
        h("small", {}, change, each.ms === undefined ? "" : ` · ${time(each.ms * 1e6)}`),
        n === stage && rules.length ? h("div.rules", {}, ...rules) : null,
      );
    });
    const spent = doc.idle.reduce((sum, { ms }) => sum + ms, 0);
    const idle = doc.idle.length
      ? h("details.idle", {}, h("summary", {}, `${plural(doc.idle.length, "pass")}${doc.idle.length === 1 ? "" : "es"} changed nothing · ${time(spent * 1e6)}`), ...doc.idle.map(({ name, ms }) => h("div", {}, name.replaceAll("_", " "), h("small", {}, time(ms * 1e6)))))
      : null;
    refill(this.list, ...entries, idle);
  }

  private drawDiff(): void {
    const { doc, stage } = this.app;
    const after = doc.stages[stage].body;
    const before = stage ? doc.stages[stage - 1].body : after;
    const same = (a: number, b: number) => a === b || doc.instructions[a].text === doc.instructions[b].text;
    const rows: Row[] = [];
    let gone: number[] = [];
    const flush = (fresh: number[]) => {
      for (let n = 0; n < Math.max(gone.length, fresh.length); n++) rows.push({ before: gone[n], after: fresh[n] });
      gone = [];
    };
    let [left, right] = [0, 0];
    for (const part of diffArrays(before, after, { comparator: same })) {
      if (part.removed) {
        gone = before.slice(left, left + part.value.length);
        left += part.value.length;
      } else if (part.added) {
        flush(after.slice(right, right + part.value.length));
        right += part.value.length;
      } else {
        flush([]);
        for (let n = 0; n < part.value.length; n++) rows.push({ before: before[left + n], after: after[right + n] });
        left += part.value.length;
        right += part.value.length;
      }
    }
    flush([]);
    const changed = (row: Row) => row.before === undefined || row.after === undefined || !same(row.before, row.after);
    const kept = rows.map((_, n) => stage === 0 || this.whole || rows.slice(Math.max(0, n - AROUND), n + AROUND + 1).some(changed));
    const lines: Node[] = [];
    let hidden = 0;
    const fold = () => {
      if (hidden) lines.push(h("button.fold-line", { click: () => this.toggle() }, `${plural(hidden, "unchanged line")}`));
      hidden = 0;
    };
    rows.forEach((row, n) => {
      if (!kept[n] || lines.length > MOST_ROWS) {
        hidden += 1;
        return;
      }
      fold();
      const mark = changed(row) ? ".changed" : "";
      if (stage === 0) lines.push(h("div.pair.single", {}, this.line(row.after, "")));
      else lines.push(h(`div.pair${mark}`, {}, this.line(row.before, mark && "gone"), this.line(row.after, mark && "fresh")));
    });
    fold();
    const head = stage
      ? h("header", {}, h("span", {}, `before · ${plural(before.length, "instruction")}`), h("span", {}, `after ${doc.stages[stage].name.replaceAll("_", " ")} · ${plural(after.length, "instruction")}`))
      : h("header.single", {}, h("span", {}, `as traced · ${plural(after.length, "instruction")}`));
    refill(this.diff, head, ...lines);
    this.diff.scrollTop = 0;
  }

  private toggle(): void {
    this.whole = !this.whole;
    this.show();
  }

  private line(id: number | undefined, mark: string): Node {
    if (id === undefined) return h("div.line.none");
    const select = () => this.app.select({ kind: "instruction", id });
    return h(`button.line${mark ? `.${mark}` : ""}`, { click: select, "data-instruction": id }, code(this.app.doc.instructions[id].text, "python"));
  }
}
