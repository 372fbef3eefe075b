// Package mcp is the face for clients of the Model Context Protocol: a model's
// host, which asks what tools there are and calls them. It translates the protocol
// to the kernel and back, and decides nothing.
//
//	POST /mcp     one message (Streamable HTTP); any other method is 405
//	Face.Stdio    one client on standard input and output
//
// # Revisions
//
// Two eras of the protocol are spoken side by side. Of 2026-07-28 each request says
// its version and the client's capabilities itself, and the headers of HTTP repeat
// what it is. Of 2025-11-25 and 2025-06-18 a client begins with initialize, and brings
// what it declared there in the id of its session. Nothing is remembered between two
// requests but the questions that wait for a client's answer, and from which level on
// those older clients are told what their tools log. Each request is let in by its own
// credential.
//
// # What is served
//
// Tools: those that the agent may use, by their wire names (web_search for
// web.search), or where Options say so by the registry's, with schemas that are
// closed. The lists of prompts and resources are there, and empty. There are no
// subscriptions.
//
// A client that gives a token is told how far its call is, and one that says from which
// level on what its tool logs, as notifications before the answer: over HTTP the answer
// is then a stream, which begins with the first of them.
// What a tool asks before it goes on is the result of a call of 2026-07-28 that says
// which such questions the client can answer; the answers come with the same call, sent
// again. Clients of before are asked by requests in the middle of their call, and answer
// by responses; for the kernel it is the same, a call and another one with the answers.
//
// A call is one native input of the kernel. Its arguments are the very bytes of the
// request, which the kernel reads: what is wrong with them is a refusal of the same
// code as on every other face. A refusal is a result with isError, whose text is the
// output of a tool_result, for the model to read. A name that stands for no tool is
// an error of JSON-RPC, as the protocol has it; so is what refuses the request and
// not the call, with the HTTP status of its code.
//
// # Why the messages are read here
//
// There is an official SDK, and the tests of this package use its client. Its server
// stands behind three things that this face must not have. It reads a message with a
// decoder that takes duplicate names and turns large ids into floating-point numbers.
// It answers faults with text that quotes what was sent. And it runs each request in
// goroutines of its own, where a panic ends the process instead of the request, with
// a server and its tools built anew for each caller. What is left of JSON-RPC is
// small, and is read as strictly as all else that comes in: once, by one reader.
package mcp
