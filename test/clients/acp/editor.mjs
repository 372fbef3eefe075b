// An editor: a client of the SDK with the files and the programs of this machine. It writes
// down what its agent tells it and asks of it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

export const { agent: agentMethods, client: clientMethods } = acp.methods;

// ofKind answers a request for permission with the first option of a kind.
export const ofKind = (kind) => ({ options }) => {
  const option = options.find((o) => o.kind === kind);
  return option ? { outcome: 'selected', optionId: option.optionId } : { outcome: 'cancelled' };
};

export const capabilities = { fs: { readTextFile: true, writeTextFile: true }, terminal: true };

export class Editor {
  asked = [];
  updates = [];
  read = [];
  wrote = [];
  ran = [];
  #terminals = new Map();

  // choose answers requests for permission; told is called with each update.
  constructor([command, ...args], { cwd, env = process.env, choose = ofKind('allow_once'), told = () => {} }) {
    this.process = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.said = '';
    this.process.stderr.on('data', (data) => (this.said += data));
    this.ended = once(this.process, 'close');
    const methods = clientMethods;
    const app = acp
      .client({ name: 'editor' })
      .onNotification(methods.session.update, ({ params }) => {
        this.updates.push(params.update);
        told(params.update, params.sessionId);
      })
      .onRequest(methods.session.requestPermission, async ({ params }) => {
        this.asked.push(params);
        return { outcome: await choose(params) };
      })
      .onRequest(methods.fs.readTextFile, async ({ params }) => {
        this.read.push(params.path);
        return { content: await fs.readFile(params.path, 'utf8') };
      })
      .onRequest(methods.fs.writeTextFile, async ({ params }) => {
        this.wrote.push(params.path);
        await fs.writeFile(params.path, params.content);
        return {};
      })
      .onRequest(methods.terminal.create, ({ params }) => this.#create(params, cwd))
      .onRequest(methods.terminal.output, ({ params }) => {
        const { output, exitStatus } = this.#terminals.get(params.terminalId);
        return { output, truncated: false, exitStatus };
      })
      .onRequest(methods.terminal.waitForExit, ({ params }) => this.#terminals.get(params.terminalId).exited)
      .onRequest(methods.terminal.kill, ({ params }) => (this.#terminals.get(params.terminalId).program.kill(), {}))
      .onRequest(methods.terminal.release, ({ params }) => (this.#terminals.delete(params.terminalId), {}));
    this.connection = app.connect(acp.ndJsonStream(Writable.toWeb(this.process.stdin), Readable.toWeb(this.process.stdout)));
    this.agent = this.connection.agent;
  }

  #create({ command, args = [], env = [], cwd }, project) {
    this.ran.push([command, ...args].join(' '));
    const program = spawn(command, args, { cwd: cwd ?? project, env: { ...process.env, ...Object.fromEntries(env.map((e) => [e.name, e.value])) } });
    const terminal = { program, output: '' };
    for (const stream of [program.stdout, program.stderr]) stream.on('data', (data) => (terminal.output += data));
    terminal.exited = new Promise((resolve) => {
      const end = (exitCode, signal) => resolve((terminal.exitStatus = { exitCode, signal }));
      program.on('close', end);
      program.on('error', () => end(127, null));
    });
    const terminalId = `terminal-${this.#terminals.size + 1}`;
    this.#terminals.set(terminalId, terminal);
    return { terminalId };
  }

  // open initializes the connection, and opens a session in a folder.
  async open(cwd, mcpServers = []) {
    this.initialized = await this.agent.request(agentMethods.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: capabilities });
    this.session = await this.agent.request(agentMethods.session.new, { cwd, mcpServers });
    return this.session.sessionId;
  }

  prompt(sessionId, text) {
    return this.agent.request(agentMethods.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  }

  // text is what the agent has said, without its thoughts.
  get text() {
    return this.updates.filter((u) => u.sessionUpdate === 'agent_message_chunk').map((u) => u.content.text).join('');
  }

  // calls are the tool calls as they are shown: the updates of each put together, with all of
  // its statuses in order.
  get calls() {
    const calls = new Map();
    for (const { sessionUpdate, ...update } of this.updates) {
      if (sessionUpdate !== 'tool_call' && sessionUpdate !== 'tool_call_update') continue;
      const call = calls.get(update.toolCallId) ?? { statuses: [] };
      const said = Object.fromEntries(Object.entries(update).filter(([, value]) => value !== null && value !== undefined));
      Object.assign(call, said);
      if (update.status && update.status !== call.statuses.at(-1)) call.statuses.push(update.status);
      calls.set(update.toolCallId, call);
    }
    return [...calls.values()];
  }

  // close ends the agent's input, and returns its exit code once it has ended.
  async close() {
    this.process.stdin.end();
    const [code] = await this.ended;
    return code;
  }
}

// shown is the text of a tool call's content.
export const shown = (call) => (call.content ?? []).filter((c) => c.type === 'content').map((c) => c.content.text).join('');
