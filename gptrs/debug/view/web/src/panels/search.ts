// Search over instructions, modules, steps and lines: every word has to occur.

import type { App } from "../app";
import { h, refill } from "../dom";
import { plural, shortPath } from "../format";
import { opLabel, type Selection } from "../model";

interface Entry {
  text: string;
  label: string;
  detail: string;
  kind: string;
  selection: Selection;
}

const SHOWN = 60;

export class Search {
  readonly input = h("input", { type: "search", placeholder: "Search  /", "aria-label": "search", autocomplete: "off", spellcheck: "false" }) as HTMLInputElement;
  private readonly list = h("div.found", { role: "listbox", hidden: true });
  readonly element = h("div.search", { role: "search" }, this.input, this.list);
  private entries: Entry[] | null = null;
  private at = 0;
  private found: Entry[] = [];

  constructor(private readonly app: App) {
    this.input.addEventListener("input", () => this.look());
    this.input.addEventListener("focus", () => this.look());
    this.input.addEventListener("blur", () => setTimeout(() => (this.list.hidden = true), 150));
    this.input.addEventListener("keydown", (event) => this.key(event));
  }

  private index(): Entry[] {
    const { doc, model } = this.app;
    const entries: Entry[] = [];
    doc.groups.forEach((group, id) => {
      const label = group.path || group.label;
      entries.push({ text: `${label} ${group.class ?? ""} ${group.function ?? ""}`, label, detail: group.class ?? "", kind: group.kind, selection: { kind: "group", id } });
    });
    doc.instructions.forEach((it, id) => {
      const place = it.file === undefined ? "" : `${shortPath(doc.files[it.file].path)}:${it.line}`;
      const group = doc.groups[it.group];
      const stage = doc.stages[model.stages(id)[0] ?? 0]?.name ?? "";
      entries.push({ text: `${it.text} ${it.op} ${group.path || group.label} ${it.function ?? ""} ${place}`, label: opLabel(it), detail: `${it.text.split(" = ")[0]} · ${group.path || group.label} · ${place}`, kind: stage, selection: { kind: "instruction", id } });
    });
    doc.plan?.steps.forEach((step, id) => {
      entries.push({ text: `${step.name} ${step.kind} ${step.note} ${step.result}`, label: step.name, detail: step.result, kind: "step", selection: { kind: "step", id } });
    });
    for (const entry of entries) entry.text = entry.text.toLowerCase();
    return entries;
  }

  private look(): void {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.at = 0;
    if (!words.length) {
      this.list.hidden = true;
      return;
    }
    this.entries ??= this.index();
    this.found = this.entries.filter(({ text }) => words.every((word) => text.includes(word)));
    this.draw();
  }

  private draw(): void {
    const rows = this.found.slice(0, SHOWN).map((entry, n) =>
      h(`button.hit${n === this.at ? ".on" : ""}`, { role: "option", "aria-selected": n === this.at, mousedown: () => this.go(entry) }, h("b", {}, entry.label), h("span", {}, entry.detail), h("i", {}, entry.kind)),
    );
    const shown = Math.min(SHOWN, this.found.length);
    const more = this.found.length > shown ? `${plural(this.found.length, "match")}es, the first ${shown} shown`.replace("matchs", "match").replace("eses", "es") : "";
    refill(this.list, ...(rows.length ? rows : [h("p.none", {}, "Nothing matches.")]), more ? h("p.none", {}, more) : null);
    this.list.hidden = false;
    this.list.querySelector(".on")?.scrollIntoView({ block: "nearest" });
  }

  private go(entry: Entry): void {
    this.list.hidden = true;
    this.input.blur();
    if (this.app.panel !== "graph" && entry.selection?.kind !== "step") this.app.setPanel("graph");
    this.app.select(entry.selection);
  }

  private key(event: KeyboardEvent): void {
    const last = Math.min(SHOWN, this.found.length) - 1;
    if (event.key === "ArrowDown") this.at = Math.min(last, this.at + 1);
    else if (event.key === "ArrowUp") this.at = Math.max(0, this.at - 1);
    else if (event.key === "Enter" && this.found[this.at]) return this.go(this.found[this.at]);
    else if (event.key === "Escape") return this.input.blur();
    else return;
    event.preventDefault();
    this.draw();
  }
}
