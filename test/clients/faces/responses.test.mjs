// The official client of Responses, openai, in two versions.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import OpenAI from 'openai';
import { ResponsesToolRunner } from 'openai/helpers/responses-tool-runner';
import OpenAI6 from 'openai6';

import { collected, keeping, places, rejected, rejection, structure, structured, thought, tooMany } from './faces.mjs';
import { endings, functions, orchestrated } from './places.mjs';

const tools = Object.entries(functions).map(([name, f]) => ({ type: 'function', name, description: f.description, parameters: f.parameters, strict: false }));

const question = [{ role: 'user', content: 'Please.' }];
const asking = (place, scenario, more) => ({ model: place.model(scenario), input: question, store: false, ...more });
const calls = (response) => response.output.filter((i) => i.type === 'function_call');

const ways = {
  whole: (client, q) => client.responses.create(q),
  streamed: (client, q) => client.responses.stream(q).finalResponse(),
};

// A response that failed is an error, or says so in its state.
async function refused(answer) {
  try {
    const { status, error, output } = await answer;
    assert.equal(status, 'failed');
    assert.deepEqual(output.filter((i) => i.type.endsWith('_call')), []);
    return error;
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return error;
  }
}

for (const [version, Client] of Object.entries({ 7: OpenAI, 6: OpenAI6 })) {
  const clientOf = (place, more) => new Client({ baseURL: place.baseURL, apiKey: 'unused', ...more });

  for (const place of places) {
    describe(`openai ${version}: ${place.name}`, () => {
      const client = clientOf(place);

      for (const [way, answer] of Object.entries(ways)) {
        test(`text, ${way}`, async () => {
          const got = await answer(client, asking(place, 'text', { input: 'Please.' }));
          assert.equal(got.output_text, endings.text);
          assert.equal(got.status, 'completed');
          assert.ok(got.usage.total_tokens > 0);
        });

        for (const [scenario, ending] of Object.entries({ call: endings.call, bytes: endings.bytes, thinking: thought })) {
          test(`a tool call and its result, ${way}: ${scenario}`, async () => {
            const first = await answer(client, asking(place, scenario, { tools }));
            const [call] = calls(first);
            assert.equal(call.name, 'math_evaluate');
            if (scenario === 'thinking') assert.equal(first.output[0].encrypted_content, 'c2FtcGxlLXNpZ25hdHVyZQ==');
            const output = JSON.stringify(functions.math_evaluate.run(JSON.parse(call.arguments)));
            const input = [...question, ...first.output, { type: 'function_call_output', call_id: call.call_id, output }];
            assert.equal((await answer(client, asking(place, scenario, { tools, input }))).output_text, ending);
          });
        }

        test(`two calls in one answer, ${way}`, async () => {
          const got = await answer(client, asking(place, 'parallel', { tools }));
          assert.deepEqual(calls(got).map((c) => c.name), ['math_evaluate', 'web_search']);
          assert.deepEqual(JSON.parse(calls(got)[1].arguments), { query: 'tides', num_results: 1 });
        });

        test(`what a response repeats of its request is the client's own, ${way}`, async () => {
          const got = await answer(client, asking(place, 'call', { tools, instructions: 'Be brief.' }));
          assert.deepEqual(got.tools.map(({ parsed_arguments, ...t }) => t), tools);
          assert.equal(got.instructions, 'Be brief.');
        });

        test(`an error of the server, ${way}`, async () => {
          // The gateway tries again first, and may have begun a stream meanwhile.
          const error = await refused(answer(clientOf(place, { maxRetries: 0 }), asking(place, 'busy')));
          assert.ok(error);
          if (way === 'whole') assert.ok(error instanceof Client.InternalServerError && error.status === 529);
        });

        test(`an error of the server is passed on as it is, ${way}`, async () => {
          const fetch = keeping();
          const error = await rejection(answer(clientOf(place, { fetch }), asking(place, 'rejected')));
          assert.ok(error instanceof Client.BadRequestError);
          assert.equal(fetch.body, rejected);
        });
      }

      test('text, event by event', async () => {
        const got = await collected(client.responses.create(asking(place, 'text', { stream: true })));
        assert.equal(got.error, undefined);
        assert.equal(got.pieces.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join(''), endings.text);
        assert.deepEqual(got.pieces.map((e) => e.sequence_number), got.pieces.map((_, n) => n));
        assert.equal(got.pieces.at(-1).type, 'response.completed');
      });

      test('a loop', { skip: version !== '7' && 'it has no runner of tools' }, async () => {
        for (const stream of [false, true]) {
          const runner = new ResponsesToolRunner({
            functions: tools.map((tool) => ({ tool, execute: async (given) => JSON.stringify(functions[tool.name].run(given)) })),
          });
          let last;
          for await (const turn of runner.iterate(client, asking(place, 'agent'), { stream })) last = turn.response;
          assert.equal(last.output_text, endings.agent);
        }
      });

      test('an answer in a format', async () => {
        const format = { type: 'json_schema', name: 'tides', strict: true, schema: structure };
        const got = await client.responses.parse(asking(place, 'structured', { text: { format } }));
        assert.deepEqual(JSON.parse(got.output_text), structured);
      });

      test('the number of tokens', async () => {
        const { store, ...q } = asking(place, 'call', { tools });
        assert.ok((await client.responses.inputTokens.count(q)).input_tokens > 100, store);
      });

      test('an error within a stream', async () => {
        const got = await collected(client.responses.create(asking(place, 'broken', { stream: true })));
        // A client of version 6 hands the event over; one of version 7 makes an error of it.
        const last = got.pieces.at(-1);
        assert.ok(got.error instanceof Client.APIError || last.type === 'error' || last.type === 'response.failed', String(got.error));
      });

      if (!place.judges) return;

      for (const [way, answer] of Object.entries(ways)) {
        test(`a call that is repaired is seen repaired only, ${way}`, async () => {
          for (const scenario of ['near-name', 'repair', 'prose']) {
            const [call, ...more] = calls(await answer(client, asking(place, scenario, { tools })));
            assert.equal(more.length, 0, scenario);
            assert.ok(functions[call.name], scenario);
            assert.notEqual(JSON.parse(call.arguments).num_results, '1', scenario);
          }
        });

        test(`a refusal is an error of the client, ${way}`, async () => {
          const fetch = keeping();
          const error = await refused(answer(clientOf(place, { fetch }), asking(place, 'stubborn', { tools })));
          assert.equal(error.code, 'unexpected_argument');
          assert.match(error.message, tooMany);
          assert.equal(fetch.requests, 1);
          if (way === 'whole') assert.ok(error instanceof Client.UnprocessableEntityError);
        });

        test(`a command and a patch that were not offered are an error, ${way}`, async () => {
          const error = await refused(answer(client, asking(place, 'shell', { tools })));
          assert.ok(error.code, String(error));
        });

        test(`a search of the provider is refused, ${way}`, async () => {
          const error = await rejection(answer(client, asking(place, 'hosted', { tools: [{ type: 'web_search' }] })));
          assert.ok(error instanceof Client.BadRequestError);
          assert.ok((await refused(answer(client, asking(place, 'hosted', { tools })))).code);
        });

        test(`an answer that breaks off is no call, ${way}`, async () => {
          const error = await refused(answer(clientOf(place, { maxRetries: 0 }), asking(place, 'cut', { tools })));
          assert.equal(error.code, 'upstream_unavailable');
        });
      }

      test('a tool that is not registered', async () => {
        const unknown = [{ type: 'function', name: 'nobody_knows', parameters: { type: 'object' }, strict: false }];
        const error = await rejection(client.responses.create(asking(place, 'text', { tools: unknown })));
        assert.ok(error instanceof Client.BadRequestError);
        assert.match(error.message, /callgate tools import responses/);
      });

      test('a conversation that the provider keeps is refused', async () => {
        const error = await rejection(client.responses.create(asking(place, 'text', { previous_response_id: 'resp_1' })));
        assert.ok(error instanceof Client.BadRequestError);
      });
    });
  }

  for (const place of orchestrated.filter((p) => !p.name.includes('text'))) {
    describe(`openai ${version}: ${place.name}`, () => {
      const client = clientOf(place);
      const agent = /^The best page is ".*tides.*", at https:\/\/example\.com\/science\/tides\. The notes of this project begin with "# Notes/;

      for (const [way, answer] of Object.entries(ways)) {
        test(`a whole task in one request, ${way}`, async () => {
          const got = await answer(client, asking(place, 'agent'));
          assert.match(got.output_text, agent);
          assert.deepEqual(calls(got), []);
        });

        test(`calls that are repaired, ${way}`, async () => {
          for (const [scenario, ending] of Object.entries({ 'near-name': /42/, repair: /tides/, bytes: /2\.5 — exactly/, parallel: /5/ })) {
            assert.match((await answer(client, asking(place, scenario))).output_text, ending, scenario);
          }
        });

        test(`an endless loop ends, ${way}`, async () => {
          assert.equal((await refused(answer(client, asking(place, 'loop')))).code, 'bound_reached');
        });
      }
    });
  }
}
