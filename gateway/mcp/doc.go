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
// what it is. Of 2025-11-25 and 2025-06-18 a client begins with initialize. Nothing
// is remembered between two requests over HTTP: there are no sessions, and each
// request is let in by its own credential.
//
// # What is served
//
// Tools: those that the agent may use, by the registry's names, with schemas that
// are closed. The lists of prompts and resources are there, and empty. Nothing is
// asked of the client, and nothing is sent to it but the one answer to each
// request; so there are no streams, subscriptions, log messages, samplings or
// elicitations.
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
