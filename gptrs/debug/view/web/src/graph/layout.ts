// Positions: each open container is laid out by itself (dagre), inner ones first. A layout stays
// valid until something inside its container opens or closes.

import { Graph, layout as dagre } from "@dagrejs/dagre";

import { canOpen, isPort, type GraphEdge, type GraphNode } from "./hierarchy";

export interface Box {
  x: number; // of the left edge, in the container
  y: number;
  width: number;
  height: number;
}

export interface Route {
  edge: GraphEdge;
  points: { x: number; y: number }[];
}

export interface Layout {
  width: number;
  height: number;
  boxes: Map<GraphNode, Box>;
  routes: Route[];
}

export const HEADER = 38;
const PAD = 18;
const OP_HEIGHT = 46;
const PORT = 10;

const canvas = document.createElement("canvas").getContext("2d");

function textWidth(text: string, font: string): number {
  if (!canvas) return text.length * 7;
  canvas.font = font;
  return canvas.measureText(text).width;
}

const widths = new Map<string, number>();

/** That of .sub in view.css. */
const MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';

/** The width of a leaf: that of the longer of its two lines, which are beside the chevron. */
function leafWidth(node: GraphNode): number {
  const key = `${node.label}\n${node.sub}\n${node.kind}`;
  let width = widths.get(key);
  if (width === undefined) {
    const label = textWidth(node.label, "600 13px system-ui, sans-serif");
    const sub = textWidth(node.sub, `11px ${MONO}`);
    const chevron = canOpen(node) ? 22 : 0;
    width = Math.ceil(Math.min(340, Math.max(72, Math.max(label, sub) + chevron + 32)));
    widths.set(key, width);
  }
  return width;
}

export class Layouts {
  private readonly known = new Map<GraphNode, Layout>();

  constructor(readonly open: Set<string>) {}

  isOpen(node: GraphNode): boolean {
    return this.open.has(node.key) && canOpen(node);
  }

  /** Open or close a container. */
  toggle(node: GraphNode, opened: boolean): void {
    if (opened) this.open.add(node.key);
    else this.open.delete(node.key);
    for (let n: GraphNode | null = node; n; n = n.parent) this.known.delete(n);
  }

  size(node: GraphNode): { width: number; height: number } {
    if (isPort(node)) return { width: PORT, height: PORT };
    if (!this.isOpen(node)) {
      const small = node.kind === "input" || node.kind === "output";
      return { width: leafWidth(node), height: small ? 40 : OP_HEIGHT };
    }
    const { width, height } = this.of(node);
    return { width: Math.max(width, leafWidth(node) + 20), height };
  }

  of(container: GraphNode): Layout {
    let found = this.known.get(container);
    if (!found) this.known.set(container, (found = this.compute(container)));
    return found;
  }

  private compute(container: GraphNode): Layout {
    const graph = new Graph({ multigraph: false });
    graph.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 34, edgesep: 14, marginx: 0, marginy: 0 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const child of container.children) graph.setNode(child.key, { ...this.size(child) });
    for (const { from, to } of container.edges.values()) {
      if (graph.hasNode(from.key) && graph.hasNode(to.key)) graph.setEdge(from.key, to.key, {});
    }
    dagre(graph);
    const top = container.parent ? HEADER : 0;
    const pad = container.parent ? PAD : 0;
    const boxes = new Map<GraphNode, Box>();
    let right = 0;
    let bottom = 0;
    for (const child of container.children) {
      const { x, y, width, height } = graph.node(child.key) as Box;
      boxes.set(child, { x: x - width / 2 + pad, y: y - height / 2 + top, width, height });
      right = Math.max(right, x + width / 2);
      bottom = Math.max(bottom, y + height / 2);
    }
    const routes: Route[] = [];
    for (const edge of container.edges.values()) {
      const label = graph.edge(edge.from.key, edge.to.key) as { points?: { x: number; y: number }[] } | undefined;
      if (!label?.points) continue;
      routes.push({ edge, points: label.points.map(({ x, y }) => ({ x: x + pad, y: y + top })) });
      for (const { x } of label.points) right = Math.max(right, x);
    }
    return { width: right + 2 * pad, height: bottom + top + pad, boxes, routes };
  }
}
