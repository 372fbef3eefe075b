// The official client of Messages, @anthropic-ai/sdk.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';

import { collected, keeping, places, rejected, rejection, structure, structured, thought, tooMany } from './faces.mjs';
import { endings, functions, orchestrated, question } from './places.mjs';

const tools = Object.entries(functions).map(([name, f]) => ({ name, description: f.description, input_schema: f.parameters }));

const runnable = Object.entries(functions).map(([name, f]) =>
  betaTool({ name, description: f.description, inputSchema: f.parameters, run: async (given) => JSON.stringify(f.run(given)) }),
);

function clientOf(place, more) {
  return new Anthropic({ baseURL: place.baseURL.replace(/\/v1$/, ''), apiKey: 'unused', ...more });
}

const asking = (place, scenario, more) => ({ model: place.model(scenario), max_tokens: 1000, messages: [...question], ...more });

const text = (message) => message.content.filter((b) => b.type === 'text').map((b) => b.text).join('');
const calls = (message) => message.content.filter((b) => b.type === 'tool_use');

// The same answer whole, streamed, and as the stream's events add up.
const ways = {
  whole: (client, q) => client.messages.create(q),
  streamed: (client, q) => client.messages.stream(q).finalMessage(),
};

for (const place of places) {
  describe(`@anthropic-ai/sdk: ${place.name}`, () => {
    const client = clientOf(place);

    for (const [way, answer] of Object.entries(ways)) {
      test(`text, ${way}`, async () => {
        const got = await answer(client, asking(place, 'text'));
        assert.equal(text(got), endings.text);
        assert.equal(got.stop_reason, 'end_turn');
        assert.ok(got.usage.input_tokens > 0 && got.usage.output_tokens > 0);
      });

      for (const [scenario, ending] of Object.entries({ call: endings.call, bytes: endings.bytes, thinking: thought })) {
        test(`a tool call and its result, ${way}: ${scenario}`, async () => {
          const first = await answer(client, asking(place, scenario, { tools }));
          const [call] = calls(first);
          assert.equal(first.stop_reason, 'tool_use');
          assert.equal(call.name, 'math_evaluate');
          if (scenario === 'thinking') assert.equal(first.content[0].signature, 'c2FtcGxlLXNpZ25hdHVyZQ==');
          const result = { type: 'tool_result', tool_use_id: call.id, content: JSON.stringify(functions.math_evaluate.run(call.input)) };
          const messages = [...question, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }];
          assert.equal(text(await answer(client, asking(place, scenario, { tools, messages }))), ending);
        });
      }

      test(`two calls in one answer, ${way}`, async () => {
        const got = await answer(client, asking(place, 'parallel', { tools }));
        assert.deepEqual(calls(got).map((c) => c.name), ['math_evaluate', 'web_search']);
        assert.deepEqual(calls(got)[1].input, { query: 'tides', num_results: 1 });
      });

      test(`an error of the server, ${way}`, async () => {
        const error = await rejection(answer(clientOf(place, { maxRetries: 0 }), asking(place, 'busy')));
        // The gateway tries again first, and may have begun a stream meanwhile.
        if (way === 'whole') assert.ok(error instanceof Anthropic.InternalServerError && error.status === 529);
        assert.equal(error.type, 'overloaded_error');
      });

      test(`an error of the server is passed on as it is, ${way}`, async () => {
        const fetch = keeping();
        const error = await rejection(answer(clientOf(place, { fetch }), asking(place, 'rejected')));
        assert.ok(error instanceof Anthropic.BadRequestError);
        assert.equal(fetch.body, rejected);
      });
    }

    test('text, event by event', async () => {
      const got = await collected(client.messages.create(asking(place, 'text', { stream: true })));
      assert.equal(got.error, undefined);
      assert.equal(got.pieces.map((e) => e.delta?.text ?? '').join(''), endings.text);
      assert.equal(got.pieces.at(-1).type, 'message_stop');
    });

    test('a loop', async () => {
      for (const scenario of ['agent', 'parallel']) {
        const last = await client.beta.messages.toolRunner(asking(place, scenario, { tools: runnable }));
        assert.equal(text(last), scenario === 'agent' ? endings.agent : 'The value is 5.');
      }
    });

    test('a loop, streamed', async () => {
      let last;
      for await (const stream of client.beta.messages.toolRunner(asking(place, 'agent', { tools: runnable, stream: true }))) {
        last = await stream.finalMessage();
      }
      assert.equal(text(last), endings.agent);
    });

    test('an answer in a format', async () => {
      const got = await client.messages.parse(asking(place, 'structured', { output_config: { format: jsonSchemaOutputFormat(structure) } }));
      assert.deepEqual(got.parsed_output, structured);
    });

    test('the number of tokens', async () => {
      const { max_tokens, ...q } = asking(place, 'call', { tools });
      assert.ok((await client.messages.countTokens(q)).input_tokens > 100, max_tokens);
    });

    test('the models', async () => {
      const ids = [];
      for await (const model of client.models.list()) ids.push(model.id);
      assert.ok(ids.includes(place.model('agent')), ids.join(' '));
    });

    test('an error within a stream', async () => {
      const got = await collected(client.messages.create(asking(place, 'broken', { stream: true })));
      assert.ok(got.error instanceof Anthropic.APIError, String(got.error));
      assert.equal(got.error.type, 'overloaded_error');
    });

    if (!place.judges) return;

    for (const [way, answer] of Object.entries(ways)) {
      test(`a call that is repaired is seen repaired only, ${way}`, async () => {
        for (const scenario of ['near-name', 'repair', 'prose']) {
          const got = await answer(client, asking(place, scenario, { tools }));
          const [call, ...more] = calls(got);
          assert.equal(more.length, 0, scenario);
          assert.ok(functions[call.name], scenario);
          assert.notEqual(call.input.num_results, '1', scenario);
        }
      });

      test(`a refusal is an error of the client, ${way}`, async () => {
        const fetch = keeping();
        const error = await rejection(answer(clientOf(place, { fetch }), asking(place, 'stubborn', { tools })));
        assert.ok(error instanceof Anthropic.APIError);
        assert.equal(error.errorCode, 'unexpected_argument');
        assert.match(error.message, tooMany);
        assert.equal(fetch.requests, 1);
        if (way === 'whole') assert.ok(error instanceof Anthropic.UnprocessableEntityError);
      });

      test(`a call of a tool that was not offered is an error, ${way}`, async () => {
        const error = await rejection(answer(client, asking(place, 'shell', { tools })));
        assert.equal(error.errorCode, 'unknown_tool');
      });

      test(`a search of the provider is refused, ${way}`, async () => {
        const hosted = [{ type: 'web_search_20250305', name: 'web_search' }];
        const error = await rejection(answer(client, asking(place, 'hosted', { tools: hosted })));
        assert.ok(error instanceof Anthropic.BadRequestError);
        // A model that searches without being asked is refused too.
        assert.ok((await rejection(answer(client, asking(place, 'hosted', { tools })))).errorCode);
      });

      test(`an answer that breaks off is no call, ${way}`, async () => {
        const error = await rejection(answer(clientOf(place, { maxRetries: 0 }), asking(place, 'cut', { tools })));
        assert.equal(error.errorCode, 'upstream_unavailable');
      });
    }

    test('a tool that is not registered', async () => {
      const unknown = [{ name: 'nobody_knows', input_schema: { type: 'object' } }];
      const error = await rejection(client.messages.create(asking(place, 'text', { tools: unknown })));
      assert.ok(error instanceof Anthropic.BadRequestError);
      assert.match(error.message, /callgate tools import anthropic/);
    });
  });
}

for (const place of orchestrated.filter((p) => !p.name.includes('text'))) {
  describe(`@anthropic-ai/sdk: ${place.name}`, () => {
    const client = clientOf(place);
    const agent = /^The best page is ".*tides.*", at https:\/\/example\.com\/science\/tides\. The notes of this project begin with "# Notes/;

    for (const [way, answer] of Object.entries(ways)) {
      test(`a whole task in one request, ${way}`, async () => {
        const got = await answer(client, asking(place, 'agent'));
        assert.match(text(got), agent);
        assert.deepEqual(calls(got), []);
        assert.equal(got.stop_reason, 'end_turn');
      });

      test(`calls that are repaired, ${way}`, async () => {
        for (const [scenario, ending] of Object.entries({ 'near-name': /42/, repair: /tides/, bytes: /2\.5 — exactly/, parallel: /5/ })) {
          assert.match(text(await answer(client, asking(place, scenario))), ending, scenario);
        }
      });

      test(`an endless loop ends, ${way}`, async () => {
        const error = await rejection(answer(client, asking(place, 'loop')));
        assert.equal(error.errorCode, 'bound_reached');
      });
    }
  });
}
