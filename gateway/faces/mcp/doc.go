// Package mcp is the face for clients of the Model Context Protocol: a model's host, which
// lists tools and calls them. It translates the protocol to the kernel and back, and
// decides nothing.
//
//	POST /mcp     one message (Streamable HTTP); any other method is 405
//	Face.Stdio    one client on standard input and output
//
// # Revisions
//
// Clients of both generations of the protocol are served. Each request of 2026-07-28 states
// its version and the client's capabilities, and HTTP headers repeat parts of it. A client
// of 2025-11-25 or 2025-06-18 begins with initialize, and the id of its session holds the
// capabilities that it declared there. Nothing is stored between two requests but the
// questions that wait for a client's answer, and the log levels that older clients have
// set. Each request is authenticated by its own credential.
//
// # What is served
//
// Tools: those that the agent may use, by their wire names (web_search for web.search), or
// where Options say so by the registry's, with schemas that are closed. The lists of
// prompts and resources are served, and empty. There are no subscriptions.
//
// A client that gives a progress token gets progress reports, and one that states a log
// level gets the logs of its tool, as notifications before the response: over HTTP the
// response is then a stream, which begins with the first of them.
// If a tool asks for input, its questions are the result of a call of 2026-07-28 whose
// client can answer them; the answers come with the same call, sent again. Older clients
// are asked by requests in the middle of their call, and answer by responses; for the
// kernel both are a call, and another call with the answers.
//
// A call is one native input of the kernel. Its arguments are the bytes of the request,
// which the kernel reads: a fault in them is a refusal with the same code as on every
// other face. A refusal is a result with isError, whose text is the output of a
// tool_result, for the model to read. An unknown tool is an error of JSON-RPC, as the
// protocol requires; so is the refusal of a request instead of a call, with the HTTP
// status of its code.
//
// # Why the messages are read here
//
// There is an official SDK, and the tests of this package use its client. Its server does
// three things that this face must not do. It reads a message with a decoder that accepts
// duplicate names and turns large ids into floating-point numbers. It answers faults with
// text that quotes the request. And it runs each request in goroutines of its own, where a
// panic ends the process instead of the request, with a server and its tools built for
// each caller. The rest of JSON-RPC is small, and is read as strictly as all other input:
// once, by one reader.
package mcp
