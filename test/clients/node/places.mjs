// Where the clients are pointed, and what an application of theirs can do. The
// same conversations take place everywhere: the clients cannot tell whether they
// speak to the model or to a gateway in front of it.

function address(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run make test-clients`);
  return value + '/v1';
}

// The model itself, and a gateway that leaves running the tools to the
// application, with either protocol towards the model.
const enforcing = address('CLIENTS_ENFORCE');
export const places = [
  { name: 'the model itself', baseURL: address('CLIENTS_MODEL'), model: (scenario) => scenario, judges: false },
  { name: 'enforce, native protocol', baseURL: enforcing, model: (scenario) => scenario, judges: true },
  { name: 'enforce, text protocol', baseURL: enforcing, model: (scenario) => 'text/' + scenario, protocol: 'text', judges: true },
];

// A gateway that runs the tools itself.
const orchestrating = address('CLIENTS_ORCHESTRATE');
export const orchestrated = [
  { name: 'orchestrate, native protocol', baseURL: orchestrating, model: (scenario) => scenario },
  { name: 'orchestrate, text protocol', baseURL: orchestrating, model: (scenario) => 'text/' + scenario },
];

// A gateway that runs the tools itself, and asks its caller about math_evaluate first.
export const asking = address('CLIENTS_ASKING');

const values = { '2*(3+4)': 14, '1+1': 2, '6*7': 42, '2+3': 5, '10/4': 2.5 };

// The tools of the application, under the names of native calls.
export const functions = {
  math_evaluate: {
    description: 'Evaluate an arithmetic expression.',
    parameters: { type: 'object', properties: { expression: { type: 'string' } }, required: ['expression'] },
    run: ({ expression }) => ({ value: values[expression] }),
  },
  web_search: {
    description: 'Search for words.',
    parameters: { type: 'object', properties: { query: { type: 'string' }, num_results: { type: 'integer' } }, required: ['query'] },
    run: () => ({ results: [{ title: 'Two tides a day', url: 'https://example.com/tides' }] }),
  },
  files_read: {
    description: 'Read a file.',
    parameters: { type: 'object', properties: { path: { type: 'string' }, lines: { type: 'array', items: { type: 'integer' } } }, required: ['path'] },
    run: ({ path }) => ({ path, text: '# Notes' }),
  },
};

// The last texts of the scenarios of the sample model, once it has the results above.
export const endings = {
  text: 'No tool is needed to say that the sea rises and falls twice a day.',
  call: 'The value is 14.',
  agent: 'The best page is "Two tides a day", at https://example.com/tides. The notes of this project begin with "# Notes".',
  bytes: 'The value is 2.5 — exactly.',
};

export const question = [{ role: 'user', content: 'Please.' }];

// Counts requests, so that a test can say that nothing was sent again.
export function counting() {
  const count = async (...request) => {
    count.requests++;
    return fetch(...request);
  };
  count.requests = 0;
  return count;
}
