// What is shown, as files.
import type { Shown } from "./select";

export function save(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A file's name: letters, digits, dots and dashes only. */
export function fileName(shown: Shown, ending: string): string {
  const words = [shown.metric.label, shown.common].join(" ").replace(/[^A-Za-z0-9]+/g, "-");
  return `${words.replace(/^-+|-+$/g, "").slice(0, 80)}.${ending}`;
}

/** A field, which no spreadsheet takes for a formula: as in the reports' CSV. */
function quoted(text: string): string {
  const isFigure = /^[0-9.,+\-±%[\]() e]*$/.test(text);
  const field = /^[=+\-@\t\r]/.test(text) && !isFigure ? `'${text}` : text;
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function figure(value: number | null | undefined): string {
  return typeof value === "number" ? String(value) : "";
}

/** One row for each point that is shown; figures unrounded, in the unit that is named. An empty field has no figure. */
export function csv(shown: Shown): string {
  const header = [shown.axis.name, "line", "metric", "unit", "n", "mean", "low95", "high95", "sd", "median", "limit", "missing"];
  const rows = shown.lines.flatMap((line) =>
    line.points.map(({ x, estimate, limit }) => [
      shown.axis.levels[x]!,
      line.key,
      shown.metric.name,
      shown.metric.unit,
      String(estimate.n),
      figure(estimate.mean),
      figure(estimate.low),
      figure(estimate.high),
      figure(estimate.sd),
      figure(estimate.median),
      figure(limit),
      estimate.missing ?? "",
    ]),
  );
  return [header, ...rows].map((row) => row.map(quoted).join(",") + "\r\n").join("");
}

/** The picture with twice the pixels, for screens and slides. */
export async function png(svg: string, width: number, height: number): Promise<Blob> {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser made no picture"))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}
