#!/usr/bin/env node
// Starts the program of this release: fetched once, compared with the checksums that this package
// carries, and kept in the cache of the user.
import { spawn } from "node:child_process";
import process from "node:process";
import { locate } from "../lib/locate.js";

let program;
try {
  program = await locate();
} catch (error) {
  process.stderr.write(`callgate: ${error.message}\n`);
  process.exit(3);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends these to both; other senders reach this process alone.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  process.stderr.write(`callgate: ${program} does not start: ${error.code ?? "error"}\n`);
  process.exit(3);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
