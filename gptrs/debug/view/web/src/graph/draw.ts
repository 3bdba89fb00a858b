// The graph as SVG: nodes and edges inside of the viewport, with zoom, selection and keyboard.

import { select } from "d3-selection";
import { curveBasis, line } from "d3-shape";
import { zoom, zoomIdentity, type ZoomTransform } from "d3-zoom";

import { s } from "../dom";
import { canOpen, isPort, type GraphEdge, type GraphNode } from "./hierarchy";
import { HEADER, type Box, type Layouts } from "./layout";

export interface Placed extends Box {
  node: GraphNode;
}

interface Wire {
  key: string;
  edge: GraphEdge;
  path: string;
  box: Box;
}

export interface GraphEvents {
  select(node: GraphNode | null): void;
  toggle(node: GraphNode): void;
  marks(node: GraphNode): string; // classes
}

const curve = line<{ x: number; y: number }>((p) => p.x, (p) => p.y).curve(curveBasis);
const FAR = 0.45; // scale below which small text is left out

export class Drawing {
  readonly svg: SVGSVGElement;
  readonly placed = new Map<GraphNode, Placed>();
  private wires: Wire[] = [];
  private size = { width: 0, height: 0 };
  private transform: ZoomTransform = zoomIdentity;
  private readonly scene: SVGElement;
  private readonly edgeLayer: SVGElement;
  private readonly nodeLayer: SVGElement;
  private readonly drawn = new Map<string, SVGElement>();
  private readonly zooming = zoom<SVGSVGElement, unknown>().scaleExtent([0.02, 3]);
  private frame = 0;
  private chosen: GraphNode | null = null;

  constructor(private readonly events: GraphEvents) {
    this.edgeLayer = s("g.edges");
    this.nodeLayer = s("g.nodes");
    this.scene = s("g.scene", {}, this.edgeLayer, this.nodeLayer);
    const arrow = s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { d: "M0,0.8 L7.2,4 L0,7.2 Z" }));
    this.svg = s("svg.graph", { tabindex: 0, role: "tree", "aria-label": "program graph" }, s("defs", {}, arrow), this.scene) as SVGSVGElement;
    this.zooming.on("zoom", (event) => {
      this.transform = event.transform;
      this.scene.setAttribute("transform", String(this.transform));
      this.schedule();
    });
    select(this.svg).call(this.zooming).on("dblclick.zoom", null);
    this.svg.addEventListener("click", (event) => {
      const at = this.nodeOf(event.target);
      if (at && (event.target as Element).closest(".chevron")) this.events.toggle(at);
      else this.events.select(at);
    });
    this.svg.addEventListener("dblclick", (event) => {
      const at = this.nodeOf(event.target);
      if (at && canOpen(at)) this.events.toggle(at);
    });
    new ResizeObserver(() => this.schedule()).observe(this.svg);
  }

  private nodeOf(target: EventTarget | null): GraphNode | null {
    const key = (target as Element | null)?.closest?.("[data-key]")?.getAttribute("data-key");
    for (const node of this.placed.keys()) if (node.key === key) return node;
    return null;
  }

  /** Take over new positions. ``anchor`` stays where it is on the screen. */
  update(root: GraphNode, layouts: Layouts, anchor: GraphNode | null = null): void {
    const before = anchor && this.placed.get(anchor);
    this.placed.clear();
    this.wires = [];
    const outer = layouts.of(root);
    this.size = { width: outer.width, height: outer.height };
    const visit = (container: GraphNode, dx: number, dy: number) => {
      const { boxes, routes } = layouts.of(container);
      for (const { edge, points } of routes) {
        const moved = points.map(({ x, y }) => ({ x: x + dx, y: y + dy }));
        const xs = moved.map((p) => p.x);
        const ys = moved.map((p) => p.y);
        const x = Math.min(...xs);
        const y = Math.min(...ys);
        const box = { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
        const key = `${container.key}|${edge.from.key}>${edge.to.key}`;
        this.wires.push({ key, edge, path: curve(moved) ?? "", box });
      }
      for (const [node, box] of boxes) {
        const placed = { node, x: box.x + dx, y: box.y + dy, width: box.width, height: box.height };
        this.placed.set(node, placed);
        if (layouts.isOpen(node)) visit(node, placed.x, placed.y);
      }
    };
    visit(root, 0, 0);
    for (const element of this.drawn.values()) element.remove();
    this.drawn.clear();
    const after = anchor && this.placed.get(anchor);
    if (before && after) {
      const { k, x, y } = this.transform;
      this.move(zoomIdentity.translate(x + (before.x - after.x) * k, y + (before.y - after.y) * k).scale(k));
    }
    this.schedule();
  }

  private move(transform: ZoomTransform): void {
    select(this.svg).call(this.zooming.transform, transform);
  }

  private get view(): { width: number; height: number } {
    return { width: this.svg.clientWidth || 800, height: this.svg.clientHeight || 600 };
  }

  /** Show the whole graph, or its top where it is too tall to be read. */
  fit(): void {
    const { width, height } = this.view;
    const whole = Math.min((width - 60) / this.size.width, (height - 60) / this.size.height);
    const k = Math.max(Math.min(whole, 1.1), Math.min(0.7, (width - 60) / this.size.width));
    const y = this.size.height * k < height ? (height - this.size.height * k) / 2 : 30;
    this.move(zoomIdentity.translate((width - this.size.width * k) / 2, y).scale(k));
  }

  zoomBy(factor: number): void {
    select(this.svg).call(this.zooming.scaleBy, factor);
  }

  /** Bring a node into the middle, unless it is in view already. */
  reveal(node: GraphNode): void {
    const at = this.placed.get(node);
    if (!at) return;
    const { width, height } = this.view;
    const k = Math.max(this.transform.k, 0.75);
    const left = this.transform.applyX(at.x);
    const top = this.transform.applyY(at.y);
    const [w, h] = [at.width * this.transform.k, at.height * this.transform.k];
    const inside = left > 20 && top > 20 && left + w < width - 20 && top + Math.min(h, 60) < height - 20;
    if (inside && this.transform.k > FAR) return;
    const y = Math.min(at.height / 2, height / 2 / k - 40);
    this.move(zoomIdentity.translate(width / 2 - (at.x + at.width / 2) * k, height / 2 - (at.y + y) * k).scale(k));
  }

  choose(node: GraphNode | null): void {
    this.chosen = node;
    for (const element of this.drawn.values()) element.remove();
    this.drawn.clear();
    this.schedule();
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Add what came into view and remove what left it. */
  private draw(): void {
    const { width, height } = this.view;
    const { k } = this.transform;
    const margin = 120 / k;
    const left = this.transform.invertX(0) - margin;
    const top = this.transform.invertY(0) - margin;
    const right = this.transform.invertX(width) + margin;
    const bottom = this.transform.invertY(height) + margin;
    const sees = (b: Box) => b.x < right && b.y < bottom && b.x + b.width > left && b.y + b.height > top;
    this.svg.classList.toggle("far", k < FAR);
    const wanted = new Set<string>();
    const place = (key: string, layer: SVGElement, make: () => SVGElement) => {
      wanted.add(key);
      if (this.drawn.has(key)) return;
      const element = make();
      this.drawn.set(key, element);
      layer.append(element);
    };
    for (const placed of this.placed.values()) {
      const small = placed.width * k < 2 && placed.height * k < 2;
      if (!small && sees(placed)) place(placed.node.key, this.nodeLayer, () => this.nodeElement(placed));
    }
    for (const wire of this.wires) {
      if (sees(wire.box)) place(wire.key, this.edgeLayer, () => this.wireElement(wire));
    }
    for (const [key, element] of this.drawn) {
      if (!wanted.has(key)) {
        element.remove();
        this.drawn.delete(key);
      }
    }
    const open = [...this.nodeLayer.querySelectorAll<SVGElement>(".node.open")];
    open.sort((a, b) => Number(a.dataset.depth) - Number(b.dataset.depth));
    this.nodeLayer.prepend(...open); // below the nodes inside of them
    this.scene.insertBefore(this.edgeLayer, null);
  }

  private wireElement({ edge, path }: Wire): SVGElement {
    const touches = this.chosen !== null && (edge.from === this.chosen || edge.to === this.chosen);
    return s("path", { class: `edge${touches ? " lit" : ""}`, d: path, "marker-end": "url(#arrow)" });
  }

  private nodeElement({ node, x, y, width, height }: Placed): SVGElement {
    const chosen = node === this.chosen ? " chosen" : "";
    const open = !isPort(node) && height > 60 && canOpen(node) ? " open" : "";
    const classes = `node ${node.kind} ${node.tone}${open}${chosen} ${this.events.marks(node)}`;
    const at = { class: classes, transform: `translate(${x},${y})`, "data-key": node.key, "data-depth": node.depth };
    const title = s("title", {}, `${node.label}  ${node.sub}`);
    if (isPort(node)) {
      return s("g", at, title, s("circle", { cx: 5, cy: 5, r: 4 }), s("text.port", { x: 14, y: 9 }, node.label));
    }
    const parts = [title, s("rect.body", { width, height, rx: node.kind === "input" || node.kind === "output" ? 20 : 9 })];
    if (node.kind === "op") parts.push(s("rect.bar", { x: 0, y: 9, width: 4, height: Math.min(height, 46) - 18, rx: 2 }));
    const chevron = canOpen(node) ? 20 : 0;
    if (chevron) {
      const turn = open ? "M6,15 L11,20 L16,15" : "M8,12 L13,17 L8,22";
      const down = open ? 1 : height / 2 - 17;
      parts.push(s("g.chevron", { transform: `translate(4,${down})` }, s("rect", { width: 24, height: 34, fill: "transparent" }), s("path", { d: turn })));
    }
    const left = 15 + chevron * 0.8;
    const middle = open ? HEADER / 2 : height / 2;
    if (open) {
      parts.push(s("text.label", { x: left, y: middle + 5 }, clipped(node.label, width - left - 12, 7.4)));
    } else {
      const room = width - left - 8;
      parts.push(s("text.label", { x: left, y: middle - 3 }, clipped(node.label, room, 7.2)));
      parts.push(s("text.sub", { x: left, y: middle + 13 }, clipped(node.sub, room, 6.7)));
      if (node.share > 0.005) {
        parts.push(s("rect.share", { x: 10, y: height - 3, width: Math.max(2, (width - 20) * node.share), height: 2, rx: 1 }));
      }
      if (node.weights) parts.push(s("path.weight", { d: "M0,-4 L4,0 L0,4 L-4,0 Z", transform: `translate(${width - 12},12)` }, s("title", {}, `${node.weights} weights`)));
    }
    return s("g", { ...at, role: "treeitem", "aria-label": `${node.label} ${node.sub}` }, ...parts);
  }
}

function clipped(text: string, room: number, letter: number): string {
  const most = Math.max(4, Math.floor(room / letter) + 2);
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
