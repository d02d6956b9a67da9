// Colours that people with any colour vision can distinguish, each with a marker and a different dash: none is the only sign.

export type Theme = "light" | "dark";

/** At least 4.5 to 1 against the theme's background. */
const colours: Record<Theme, readonly string[]> = {
  light: ["#0064a8", "#b84a00", "#00704f", "#a0366f", "#5b4bb7", "#7a5900", "#33373d", "#00757f"],
  dark: ["#64b9f2", "#ff9d57", "#45d1a4", "#f3a3cd", "#b8adff", "#e6c34a", "#dfe3e8", "#63d7e4"],
};

export const markers = ["circle", "square", "triangle", "diamond", "down", "plus", "cross", "ring"] as const;
export type Marker = (typeof markers)[number];

const dashes = ["", "7 3", "2 3", "9 3 2 3"] as const;

export interface Look {
  colour: string;
  marker: Marker;
  dash: string;
}

/** The look of the line with that number. After eight lines colours come again, with other dashes. */
export function look(number: number, theme: Theme): Look {
  const place = number % colours[theme].length;
  return {
    colour: colours[theme][place] ?? "#888888",
    marker: markers[place] ?? "circle",
    dash: dashes[Math.floor(number / colours[theme].length) % dashes.length] ?? "",
  };
}

/** A marker's outline about (x, y), `r` in size, as path data. */
export function outline(marker: Marker, x: number, y: number, r: number): string {
  const at = (dx: number, dy: number) => `${(x + dx * r).toFixed(1)} ${(y + dy * r).toFixed(1)}`;
  switch (marker) {
    case "circle":
    case "ring":
      return `M${at(-1, 0)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
    case "square":
      return `M${at(-0.9, -0.9)}L${at(0.9, -0.9)}L${at(0.9, 0.9)}L${at(-0.9, 0.9)}z`;
    case "triangle":
      return `M${at(0, -1.2)}L${at(1.1, 0.8)}L${at(-1.1, 0.8)}z`;
    case "down":
      return `M${at(0, 1.2)}L${at(1.1, -0.8)}L${at(-1.1, -0.8)}z`;
    case "diamond":
      return `M${at(0, -1.3)}L${at(1.1, 0)}L${at(0, 1.3)}L${at(-1.1, 0)}z`;
    case "plus":
      return `M${at(-1.2, 0)}L${at(1.2, 0)}M${at(0, -1.2)}L${at(0, 1.2)}`;
    case "cross":
      return `M${at(-1, -1)}L${at(1, 1)}M${at(-1, 1)}L${at(1, -1)}`;
  }
}

/** Whether a marker is drawn as lines only. */
export function isOpen(marker: Marker): boolean {
  return marker === "plus" || marker === "cross" || marker === "ring";
}
