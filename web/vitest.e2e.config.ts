// Tests in a real browser of the real program; scripts/web-e2e starts them.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    dir: "e2e",
    include: ["**/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 240_000,
    // One browser and one campaign at a time: the machine is measured.
    fileParallelism: false,
    pool: "forks",
  },
});
