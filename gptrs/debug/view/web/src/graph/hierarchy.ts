// The nested graph of one stage: groups, instructions and regions as containers and leaves, and for
// each container the edges between its children. A value that enters or leaves a container has a
// port there, so that each container is a graph of its own and is laid out alone.

import { bytes, flops, plural } from "../format";
import { isCall, opLabel, tone, type Model } from "../model";

export type NodeKind = "group" | "op" | "input" | "output" | "chunk" | "region" | "in" | "out";

export interface GraphNode {
  key: string;
  kind: NodeKind;
  id: number; // of the group, the instruction or the value
  label: string;
  sub: string;
  tone: string;
  share: number; // of the program's FLOPs
  weights: number; // parameters that are read here
  parent: GraphNode | null;
  depth: number;
  children: GraphNode[];
  edges: Map<string, GraphEdge>;
}

export interface GraphEdge {
  from: GraphNode;
  to: GraphNode;
  values: number[];
}

const MOST = 80; // children of a container; more are cut into chunks
const CHUNK = 40;

export class Hierarchy {
  readonly root: GraphNode;
  readonly ops = new Map<number, GraphNode>();
  readonly groups = new Map<number, GraphNode>();
  readonly values = new Map<number, GraphNode>(); // arguments and results

  constructor(
    private readonly model: Model,
    readonly stage: number,
  ) {
    const { doc } = model;
    const program = doc.stages[stage];
    this.root = this.node("group", 0, doc.name, "", null);
    this.groups.set(0, this.root);
    for (const value of program.params) {
      if (doc.values[value].role === "input") this.values.set(value, this.endpoint("input", value));
    }
    for (const id of program.body) this.add(id, this.group(doc.instructions[id].group));
    const results = program.results.map((value, n) => [value, this.endpoint("output", value, n)] as const);
    this.describe();
    this.cut(this.root);
    this.connect(program.params, program.body);
    for (const [value, node] of results) this.link(this.maker(value), node, value);
  }

  private node(kind: NodeKind, id: number, label: string, sub: string, parent: GraphNode | null, suffix = ""): GraphNode {
    const key = `${kind}${id}${suffix}`;
    const depth = parent ? parent.depth + 1 : 0;
    const made: GraphNode = { key, kind, id, label, sub, tone: "", share: 0, weights: 0, parent, depth, children: [], edges: new Map() };
    parent?.children.push(made);
    return made;
  }

  private endpoint(kind: "input" | "output", value: number, place = 0): GraphNode {
    const { name, type } = this.model.doc.values[value];
    return this.node(kind, value, name, type, this.root, kind === "output" ? `.${place}` : "");
  }

  private group(id: number): GraphNode {
    const known = this.groups.get(id);
    if (known) return known;
    const group = this.model.doc.groups[id];
    const made = this.node("group", id, this.model.label(id), group.class ?? "", this.group(group.parent ?? 0));
    this.groups.set(id, made);
    return made;
  }

  private add(id: number, parent: GraphNode): void {
    const instruction = this.model.doc.instructions[id];
    const [first] = instruction.out;
    const type = first === undefined ? "" : this.model.doc.values[first].type;
    const more = instruction.out.length > 1 ? ` +${instruction.out.length - 1}` : "";
    const node = this.node("op", id, opLabel(instruction), type + more, parent);
    node.tone = tone(instruction.kind) + (isCall(instruction) ? " call" : "");
    this.ops.set(id, node);
    for (const region of instruction.regions ?? []) {
      if (isCall(instruction)) continue; // the definition of a kernel is shown as text
      const inner = this.node("region", id, region.name, "", node, `.${region.name}`);
      for (const each of region.body) this.add(each, inner);
    }
  }

  /** The second line of groups, and what share of the program's work is in them. */
  private describe(): void {
    const totals = this.model.totals(this.stage);
    const whole = totals[0].flops || 1;
    for (const [id, node] of this.groups) {
      const { instructions, flops: work, read, written } = totals[id];
      const amount = work ? flops(work) : bytes(read + written);
      node.sub = `${plural(instructions, "op")} · ${amount}`;
      node.share = work / whole;
    }
    for (const [id, node] of this.ops) node.share = this.model.doc.instructions[id].flops / whole;
  }

  /** Put the children of large containers into chunks of neighbours, in program order. */
  private cut(node: GraphNode): void {
    for (const child of node.children) this.cut(child);
    let level = 0;
    while (node.children.length > MOST) {
      const ends = node.children.filter((c) => c.kind === "input" || c.kind === "output");
      const inner = node.children.filter((c) => c.kind !== "input" && c.kind !== "output");
      if (inner.length <= CHUNK) return;
      node.children = ends;
      for (let start = 0; start < inner.length; start += CHUNK) {
        const part = inner.slice(start, start + CHUNK);
        const chunk = this.node("chunk", start, this.span(part), "", node, `.${level}.${node.key}`);
        const work = part.reduce((sum, each) => sum + each.share, 0);
        chunk.sub = plural(part.length, "part");
        chunk.share = work;
        for (const each of part) each.parent = chunk;
        chunk.children = part;
      }
      level += 1;
    }
    this.deepen(node);
  }

  private deepen(node: GraphNode): void {
    for (const child of node.children) {
      child.depth = node.depth + 1;
      this.deepen(child);
    }
  }

  private span(part: GraphNode[]): string {
    const first = part[0];
    const last = part[part.length - 1];
    return `${first.label} … ${last.label}`;
  }

  private maker(value: number): GraphNode | undefined {
    const id = this.model.index(this.stage).maker.get(value);
    return id === undefined ? this.values.get(value) : this.ops.get(id);
  }

  private connect(params: number[], body: number[]): void {
    const { doc } = this.model;
    const weights = new Set(params.filter((value) => doc.values[value].role !== "input"));
    const visit = (ids: number[], local: Map<number, GraphNode>) => {
      for (const id of ids) {
        const instruction = doc.instructions[id];
        const node = this.ops.get(id)!;
        for (const value of instruction.in) {
          if (weights.has(value)) for (let n: GraphNode | null = node; n; n = n.parent) n.weights += 1;
          else this.link(local.get(value) ?? this.maker(value), node, value);
        }
        if (isCall(instruction)) continue;
        node.children.forEach((inner, n) => {
          const region = instruction.regions![n];
          const ports = new Map(region.params.map((value) => [value, this.port(inner, "in", value)]));
          visit(region.body, ports);
          for (const value of region.results) {
            const from = ports.get(value) ?? this.maker(value);
            if (from) this.edge(inner, this.inside(from, inner), this.port(inner, "out", value), value);
          }
        });
      }
    };
    visit(body, new Map());
  }

  private port(container: GraphNode, kind: "in" | "out", value: number): GraphNode {
    const key = `${kind}${value}.${container.key}`;
    const known = container.children.find((child) => child.key === key);
    if (known) return known;
    const { name, type } = this.model.doc.values[value];
    return this.node(kind, value, name, type, container, `.${container.key}`);
  }

  /** The child of ``container`` that has a node in it. */
  private inside(node: GraphNode, container: GraphNode): GraphNode {
    let at = node;
    while (at.parent !== container) {
      if (!at.parent) return node;
      at = at.parent;
    }
    return at;
  }

  /** Edges and ports for a value on its way from one node to another. */
  private link(from: GraphNode | undefined, to: GraphNode, value: number): void {
    if (!from || from === to) return;
    const above = new Set<GraphNode>();
    for (let n: GraphNode | null = from.parent; n; n = n.parent) above.add(n);
    let meet = to.parent;
    while (meet && !above.has(meet)) meet = meet.parent;
    if (!meet) return;
    let source = from;
    for (let c = from.parent!; c !== meet; c = c.parent!) {
      this.edge(c, source, this.port(c, "out", value), value);
      source = c;
    }
    let target = to;
    for (let c = to.parent!; c !== meet; c = c.parent!) {
      this.edge(c, this.port(c, "in", value), target, value);
      target = c;
    }
    if (source !== target) this.edge(meet, source, target, value);
  }

  private edge(container: GraphNode, from: GraphNode, to: GraphNode, value: number): void {
    const key = `${from.key}>${to.key}`;
    const known = container.edges.get(key);
    if (!known) container.edges.set(key, { from, to, values: [value] });
    else if (!known.values.includes(value)) known.values.push(value);
  }
}

export const isPort = (node: GraphNode): boolean => node.kind === "in" || node.kind === "out";
export const canOpen = (node: GraphNode): boolean => node.children.some((child) => !isPort(child));
