// One script and one style, which crates/report takes into the program, with the hashes by which a page allows them.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

function hashes(): Plugin {
  let folder = "";
  return {
    name: "hashes",
    configResolved(config) {
      folder = resolve(config.root, config.build.outDir);
    },
    closeBundle() {
      // The program takes its files as they are: nothing in them may end the element that they stand in.
      const script = readFileSync(resolve(folder, "page.js"), "utf8")
        .replaceAll("</script", "<\\/script")
        .replaceAll("<!--", "<\\!--");
      writeFileSync(resolve(folder, "page.js"), script);
      const lines = ["page.js", "page.css"].map((name) => {
        const hash = createHash("sha256").update(readFileSync(resolve(folder, name)));
        return `'sha256-${hash.digest("base64")}'`.replaceAll("'", "");
      });
      writeFileSync(resolve(folder, "page.hashes"), lines.join("\n") + "\n");
    },
  };
}

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  plugins: [hashes()],
  build: {
    outDir: "dist",
    // It holds a file of the repository.
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    lib: { entry: "src/main.tsx", formats: ["iife"], name: "stacklab", fileName: () => "page.js", cssFileName: "page" },
  },
});
