// The inspector: everything about what is selected.

import type { App } from "../app";
import type { Instruction } from "../document";
import { h, refill } from "../dom";
import { bytes, count, flops, percent, plural, shortPath, time } from "../format";
import { isCall, opLabel } from "../model";
import { code, excerpt } from "./code";
import type { Listing } from "./listing";

type Row = [string, Node | string];

export class Inspector {
  readonly element = h("aside.inspector", { "aria-label": "details", tabindex: -1 });

  constructor(
    private readonly app: App,
    private readonly listing: Listing,
  ) {}

  show(): void {
    const { selection } = this.app;
    const parts =
      selection?.kind === "instruction"
        ? this.instruction(selection.id)
        : selection?.kind === "group"
          ? this.group(selection.id)
          : selection?.kind === "value"
            ? this.value(selection.id)
            : selection?.kind === "step"
              ? this.step(selection.id)
              : this.program();
    refill(this.element, ...parts);
    this.element.scrollTop = 0;
  }

  private program(): Node[] {
    const { doc } = this.app;
    const rows: Row[] = [];
    const last = doc.stages[doc.stages.length - 1];
    if (doc.stages.length) {
      const totals = this.app.model.totals(0)[0];
      rows.push(["traced", plural(doc.stages[0].body.length, "instruction")]);
      rows.push(["after passes", plural(last.body.length, "instruction")]);
      rows.push(["arithmetic", flops(totals.flops)]);
    }
    for (const [name, size] of Object.entries(doc.sizes)) rows.push([`size ${name}`, String(size)]);
    if (doc.plan) {
      rows.push(["plan", plural(doc.plan.steps.length, "step")]);
      rows.push(["arena", bytes(doc.plan.arena_bytes)]);
      rows.push(["packed weights", bytes(doc.plan.parameter_bytes)]);
      rows.push(["results", bytes(doc.plan.result_bytes)]);
    }
    return [this.title(doc.name, "program"), this.failure(), this.table(rows), this.source(doc.where), h("p.hint", {}, "Select an instruction, a module, a step. ", h("kbd", {}, "?"), " has the keys.")].filter(isNode);
  }

  private failure(): Node | null {
    const { error } = this.app.doc;
    if (!error) return null;
    return h("div.failure", {}, h("strong", {}, error.type), h("pre", {}, error.text), this.source(error));
  }

  private instruction(id: number): Node[] {
    const { doc, model, stage } = this.app;
    const it = doc.instructions[id];
    const index = model.index(stage);
    const readers = it.out.flatMap((value) => index.readers.get(value) ?? []);
    const intensity = it.read + it.written ? it.flops / (it.read + it.written) : 0;
    const cost: Row[] = [
      ["arithmetic", it.flops ? flops(it.flops) : "none counted"],
      ["reads", bytes(it.read)],
      ["writes", bytes(it.written)],
    ];
    if (intensity) cost.push(["intensity", `${intensity.toFixed(2)} FLOP/byte`]);
    return [
      this.title(opLabel(it), it.kind),
      this.crumbs(it.group),
      h("pre.text", {}, code(it.text, "python")),
      this.heading("Results"),
      ...it.out.map((value) => this.valueRow(value)),
      this.heading("Operands"),
      ...(it.in.length ? it.in.map((value) => this.valueRow(value, index.maker.get(value))) : [h("p.none", {}, "none")]),
      this.heading("Read by"),
      ...(readers.length ? [...new Set(readers)].map((reader) => this.link(reader)) : [h("p.none", {}, "nothing, or the result of the program")]),
      this.heading("Cost"),
      this.table(cost),
      this.heading("Your line"),
      this.source(it) ?? h("p.none", {}, "not known: a pass made it"),
      ...this.runs(id),
      ...this.life(id, it),
    ].filter(isNode);
  }

  /** The steps of the plan that run it. */
  private runs(id: number): Node[] {
    const steps = this.app.model.steps(id);
    if (!this.app.doc.plan) return [];
    const rows = steps.slice(0, 12).map((step) => this.stepLink(step));
    return [this.heading("Runs in"), ...(rows.length ? rows : [h("p.none", {}, "no step of the plan")])];
  }

  private life(id: number, it: Instruction): Node[] {
    const { doc, model } = this.app;
    const stages = model.stages(id);
    if (!stages.length) return [];
    const first = stages[0];
    const last = stages[stages.length - 1];
    const made = first === 0 ? "in the traced program" : `made by ${doc.stages[first].name}`;
    const gone = last + 1 < doc.stages.length ? `, gone after ${doc.stages[last + 1].name}` : "";
    const regions = isCall(it) ? it.regions ?? [] : [];
    const definition = regions.flatMap((region) => region.body.map((each) => doc.instructions[each].text));
    return [
      this.heading("Passes"),
      h("p", {}, `${made}${gone}`),
      definition.length ? this.heading("Definition") : null,
      definition.length ? h("pre.text", {}, code(definition.join("\n"), "python")) : null,
    ].filter(isNode);
  }

  private group(id: number): Node[] {
    const { doc, model, stage } = this.app;
    const group = doc.groups[id];
    const totals = model.totals(stage)[id];
    const whole = model.totals(stage)[0];
    const rows: Row[] = [];
    if (group.class) rows.push(["class", group.class]);
    if (group.function) rows.push(["function", group.function]);
    rows.push(["instructions", count(totals.instructions)]);
    rows.push(["arithmetic", `${flops(totals.flops)} · ${percent(totals.flops, whole.flops)}`]);
    rows.push(["reads", bytes(totals.read)], ["writes", bytes(totals.written)]);
    const failed = doc.error?.group === id ? this.failure() : null;
    const ids = doc.stages[stage]?.body.filter((each) => model.path(doc.instructions[each].group).includes(id)) ?? [];
    const shown = ids.slice(0, 200).map((each) => this.link(each));
    return [
      this.title(group.path || group.label, group.kind),
      this.crumbs(group.parent),
      failed,
      this.table(rows),
      this.heading("Instructions"),
      ...shown,
      ids.length > shown.length ? h("p.none", {}, `and ${count(ids.length - shown.length)} more`) : null,
    ].filter(isNode);
  }

  private value(id: number): Node[] {
    const { doc, model, stage } = this.app;
    const value = doc.values[id];
    const index = model.index(stage);
    const maker = index.maker.get(id);
    const readers = index.readers.get(id) ?? [];
    const rows: Row[] = [
      ["type", value.type],
      ["size", bytes(value.bytes)],
    ];
    if (value.donated) rows.push(["donated", "yes: its memory may be reused"]);
    return [
      this.title(value.name, value.role === "input" ? "argument" : value.role ?? "value"),
      this.table(rows),
      maker === undefined ? null : this.heading("Made by"),
      maker === undefined ? null : this.link(maker),
      this.heading("Read by"),
      ...(readers.length ? readers.slice(0, 200).map((reader) => this.link(reader)) : [h("p.none", {}, "nothing in the program")]),
    ].filter(isNode);
  }

  private step(id: number): Node[] {
    const { doc } = this.app;
    const step = doc.plan!.steps[id];
    const whole = doc.plan!.steps.reduce((sum, each) => sum + each.ns, 0);
    const measured = doc.measured?.steps.find((each) => each.step === id);
    const rows: Row[] = [
      ["result", step.result],
      ["estimate", `${time(step.ns)} · ${percent(step.ns, whole)}`],
    ];
    if (measured) rows.push(["measured", time(measured.ns)]);
    if (step.flops) rows.push(["arithmetic", `${flops(step.flops)} · ${(step.flops / (measured?.ns ?? step.ns)).toFixed(1)} GFLOP/s`]);
    if (step.note) rows.push(["note", step.note]);
    const kernels = step.kernels.map((number) => doc.plan!.kernels[number]);
    const buttons = [
      (step.source || kernels.some((k) => k.source)) && this.open(id, "source"),
      kernels.some((k) => k.llvm) && this.open(id, "LLVM"),
      kernels.some((k) => k.assembly) && this.open(id, "assembly"),
    ].filter(isNode);
    return [
      this.title(step.name, `step ${id} · ${step.kind}`),
      this.table(rows),
      h("div.buttons", {}, ...buttons),
      this.heading("Instructions"),
      ...step.members.map((member) => this.link(member)),
    ];
  }

  private open(step: number, tab: string): Node {
    return h("button.code", { click: () => this.listing.open(step, tab) }, tab);
  }

  private title(name: string, kind: string): Node {
    return h("h2", {}, name, h("small", {}, kind));
  }

  private heading(text: string): Node {
    return h("h3", {}, text);
  }

  private table(rows: Row[]): Node {
    return h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  private crumbs(group: number | null): Node | null {
    if (group === null) return null;
    const { model } = this.app;
    const links = model.path(group).map((id) => h("button.crumb", { click: () => this.app.select({ kind: "group", id }) }, model.label(id)));
    return h("nav.crumbs", { "aria-label": "called in" }, ...links);
  }

  private valueRow(id: number, maker?: number): Node {
    const value = this.app.doc.values[id];
    const role = value.role === "parameter" || value.role === "derived" ? "weight" : value.role === "input" ? "argument" : "";
    const go = () => this.app.select(maker === undefined ? { kind: "value", id } : { kind: "instruction", id: maker });
    const from = maker === undefined ? role : opLabel(this.app.doc.instructions[maker]);
    return h("button.item", { click: go }, h("b", {}, value.name), h("code", {}, value.type), h("i", {}, [bytes(value.bytes), from].filter(Boolean).join(" · ")));
  }

  private link(id: number): Node {
    const it = this.app.doc.instructions[id];
    const type = it.out.length ? this.app.doc.values[it.out[0]].type : "";
    const place = it.line === undefined ? "" : `line ${it.line}`;
    return h("button.item", { click: () => this.app.select({ kind: "instruction", id }) }, h("b", {}, opLabel(it)), h("code", {}, type), h("i", {}, place));
  }

  private stepLink(id: number): Node {
    const step = this.app.doc.plan!.steps[id];
    return h("button.item", { click: () => this.app.select({ kind: "step", id }) }, h("b", {}, step.name), h("code", {}, step.kind), h("i", {}, time(step.ns)));
  }

  private source(where: { file?: number; line?: number; function?: string }): Node | null {
    if (where.file === undefined || where.line === undefined) return null;
    const file = this.app.doc.files[where.file];
    const place = h("p.place", { title: file.path }, `${shortPath(file.path)}:${where.line}`, where.function ? h("i", {}, ` in ${where.function}`) : null);
    return h("div", {}, place, file.text ? excerpt(file.text, where.line) : null);
  }
}

function isNode(part: Node | null | false | undefined | "" | 0): part is Node {
  return part instanceof Node;
}
