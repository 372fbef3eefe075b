// Has an agent answer one prompt, and writes down what an editor has seen of it. The job comes
// in the environment, and the record goes to standard output.
import { Editor, ofKind } from './editor.mjs';

const { command, cwd, prompt } = JSON.parse(process.env.ACP_JOB);
const editor = new Editor(command, { cwd, choose: ofKind('allow_once') });
const record = { stop: '', failure: '' };
try {
  const session = await editor.open(cwd);
  record.stop = (await editor.prompt(session, prompt)).stopReason;
} catch (error) {
  record.failure = `${error.message} ${JSON.stringify(error.data ?? null)}`;
}
record.code = await editor.close();
const { text, asked, read, wrote, ran, said } = editor;
const calls = editor.calls.map(({ title, kind, status }) => ({ title, kind, status }));
console.log(JSON.stringify({ ...record, text, asked: asked.map((a) => a.toolCall.title), read, wrote, ran, said, calls }));
