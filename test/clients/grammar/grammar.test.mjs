// XGrammar reads the grammars of `callgate tools grammar`, and takes the vectors that are
// calls, and none that the parser or a schema refuses.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const require = createRequire(import.meta.url);
// The package says that it is an ES module, and is none.
copyFileSync(require.resolve('@mlc-ai/web-xgrammar'), join(dirname(require.resolve('@mlc-ai/web-xgrammar')), 'xgrammar.cjs'));
const { Grammar, Testings } = require(join(dirname(require.resolve('@mlc-ai/web-xgrammar')), 'xgrammar.cjs'));

const vectors = join(process.env.CLIENTS_TESTDATA, 'vectors');
const cases = readFileSync(join(vectors, 'output.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));

const written = (...flags) => execFileSync(process.env.CLIENTS_CALLGATE, [
  'tools', 'grammar', '--config', join(vectors, 'config', 'callgate.yaml'),
  '--format', 'ebnf', '--agent', 'Analyst', '--project', 'acme/alpha', ...flags], { encoding: 'utf8' });

for (const [name, flags] of [['every spelling', []], ['compact', ['--compact']]]) {
  test(`XGrammar: ${name}`, async () => {
    const grammar = await Grammar.fromEBNF(written(...flags));
    let calls = 0;
    let refused = 0;
    for (const { agent, project, completion, finish_reason: finish, expect } of cases) {
      const judged = expect.verdict === 'tool_call' || ['parse', 'schema'].includes(expect.stage);
      if (agent !== 'Analyst' || project !== 'alpha' || completion === undefined || finish !== undefined || !judged) {
        continue;
      }
      const within = await Testings.isGrammarAcceptString(grammar, completion);
      if (expect.verdict !== 'tool_call') {
        assert.equal(within, false, `${completion} is refused with ${expect.code}`);
        refused++;
      } else if (flags.length === 0) {
        assert.equal(within, true, completion);
        calls++;
      } else {
        calls += within ? 1 : 0;
      }
    }
    assert.ok(calls >= 3 && refused >= 30, `${calls} calls and ${refused} refusals were compared`);
  });
}
