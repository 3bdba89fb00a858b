// What several panels ask of the document: makers and readers of values, totals of groups, labels.

import type { Document, Group, Instruction, Stage } from "./document";

export type Selection =
  | { kind: "instruction"; id: number }
  | { kind: "group"; id: number }
  | { kind: "value"; id: number }
  | { kind: "step"; id: number }
  | null;

export interface Totals {
  instructions: number;
  flops: number;
  read: number;
  written: number;
}

/** One stage: who makes and who reads each value. */
export class StageIndex {
  readonly maker = new Map<number, number>();
  readonly readers = new Map<number, number[]>();
  readonly all: number[] = []; // instructions, those of regions after their own

  constructor(doc: Document, stage: Stage) {
    const visit = (body: number[]) => {
      for (const id of body) {
        const instruction = doc.instructions[id];
        this.all.push(id);
        for (const value of instruction.out) this.maker.set(value, id);
        for (const value of new Set(instruction.in)) {
          const readers = this.readers.get(value);
          if (readers) readers.push(id);
          else this.readers.set(value, [id]);
        }
        for (const region of instruction.regions ?? []) visit(region.body);
      }
    };
    visit(stage.body);
  }
}

export class Model {
  readonly children: number[][]; // groups, by parent
  private readonly indices = new Map<number, StageIndex>();
  private readonly totalsOf = new Map<number, Totals[]>();
  private readonly stepsOf = new Map<number, number[]>();

  constructor(readonly doc: Document) {
    this.children = doc.groups.map(() => []);
    doc.groups.forEach((group, id) => {
      if (group.parent !== null) this.children[group.parent].push(id);
    });
    doc.plan?.steps.forEach((step, id) => {
      for (const member of step.members) {
        const steps = this.stepsOf.get(member);
        if (steps) steps.push(id);
        else this.stepsOf.set(member, [id]);
      }
    });
  }

  index(stage: number): StageIndex {
    let found = this.indices.get(stage);
    if (!found) this.indices.set(stage, (found = new StageIndex(this.doc, this.doc.stages[stage])));
    return found;
  }

  /** Totals of each group in a stage, inner groups included. */
  totals(stage: number): Totals[] {
    const known = this.totalsOf.get(stage);
    if (known) return known;
    const found = this.doc.groups.map(() => ({ instructions: 0, flops: 0, read: 0, written: 0 }));
    for (const id of this.doc.stages[stage].body) {
      const instruction = this.doc.instructions[id];
      for (let g: number | null = instruction.group; g !== null; g = this.doc.groups[g].parent) {
        found[g].instructions += 1;
        found[g].flops += instruction.flops;
        found[g].read += instruction.read;
        found[g].written += instruction.written;
      }
    }
    this.totalsOf.set(stage, found);
    return found;
  }

  /** Groups from the program down to this one. */
  path(group: number): number[] {
    const path: number[] = [];
    for (let g: number | null = group; g !== null; g = this.doc.groups[g].parent) path.unshift(g);
    return path;
  }

  /** The label of a group below its parent: `attn` for `h.0.attn` in `h.0`. */
  label(id: number): string {
    const group = this.doc.groups[id];
    const above = this.enclosingPath(group);
    return above && group.label.startsWith(`${above}.`)
      ? group.label.slice(above.length + 1)
      : group.label;
  }

  private enclosingPath(group: Group): string {
    for (let g = group.parent; g !== null; g = this.doc.groups[g].parent) {
      const path = this.doc.groups[g].path;
      if (path) return path;
    }
    return "";
  }

  /** The steps of the plan that run an instruction, or, of another stage, its line. */
  steps(id: number): number[] {
    const found = this.stepsOf.get(id);
    if (found || !this.doc.plan) return found ?? [];
    const { group, line, file, out } = this.doc.instructions[id];
    const alike: number[] = [];
    this.doc.plan.steps.forEach((step, number) => {
      const same = step.members.some((member) => {
        const other = this.doc.instructions[member];
        if (other.out.some((value) => out.includes(value))) return true;
        return other.group === group && other.line === line && other.file === file;
      });
      if (same) alike.push(number);
    });
    return alike;
  }

  /** The stages, by number, whose program has an instruction. */
  stages(id: number): number[] {
    const top = this.top(id);
    return this.doc.stages.flatMap((stage, n) => (stage.body.includes(top) ? [n] : []));
  }

  /** The instruction of the program itself that an instruction of a region is in. */
  top(id: number): number {
    let at = id;
    for (let p = this.doc.instructions[at].parent; p !== undefined; p = this.doc.instructions[at].parent) at = p;
    return at;
  }
}

/** How an op is called in the graph: custom calls without the backend and the dtype. */
export function opLabel(instruction: Instruction): string {
  const parts = instruction.op.split(".");
  return parts.length > 3 && /^v\d+$/.test(parts[parts.length - 1]) ? parts[2] : instruction.op;
}

export function isCall(instruction: Instruction): boolean {
  return instruction.op.includes(".");
}

/** A word for colours: what an op mostly does. */
export function tone(kind: string): string {
  switch (kind) {
    case "contraction":
    case "window":
    case "matrix":
      return "product";
    case "elementwise":
    case "activation":
    case "quantization":
      return "elementwise";
    case "norm":
    case "rowwise":
    case "reduction":
    case "order":
      return "reduction";
    case "control":
    case "effect":
      return "control";
    case "random":
    case "other":
    case "call":
      return "other";
    default:
      return "movement";
  }
}
