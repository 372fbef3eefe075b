// Package chat is the wire of OpenAI's chat completions, to the application and to the model: it reads requests and
// replies, whole and streamed, and writes answers. What is done in between, package turns does for every wire.
//
//	POST /v1/chat/completions  one completion, judged; or a whole run of tools
//
// # The request
//
// It is read strictly. Members that mean nothing here go to the model byte for byte,
// in their order, where they are known to call no tools at the provider, or the
// upstream's entry names them; any other is refused. The history must be whole: ids of calls are there and
// differ within a message, and the messages after one with calls answer each of
// them once. The tools of the request are names of registered tools in OpenAI's
// alphabet: the model gets their descriptions and schemas from the registry, and none of a
// tool that the agent may not use. No header of the caller is sent on.
//
// A body is at most 8 MiB, of at most 16,384 messages and 1,024 tools, and objects in
// it that stand in one another have at most 16,384 members together.
//
// A model may also get its tools as text (protocol: text): a system message describes them and the call
// language, the history is written in that language, and the content is judged as a completion. By it, a call that
// passes is the content where the request names no tools: such a client reads the call language itself.
//
// # The reply
//
// Strict JSON: anything else is refused, never repaired. Arguments of calls are the
// model's bytes after the string that held them was unescaped; some servers
// write the object itself, whose bytes they are then. Members that decide nothing (id, created, model, object, role and
// usage) count as absent where their values cannot be read. The index of a choice may be absent where it is the
// only one. Content may be a list of parts: of texts, which are joined, of what the model thought,
// which becomes reasoning_content, and of refusals.
//
// A piece of a call belongs to the call last begun at its index. The first
// piece that has the id, or the name, decides it; pieces after it may repeat them, but the
// name only if there is an id: without one, a second name may be that of a second call.
// Another id at an index begins another call: one provider streams so. Indexes rise from that of
// the first call, which may be above 0, as there may be gaps (one provider counts blocks of text
// too); only a piece with an id or a name can follow a gap. A piece without an index belongs to the call of its id. With
// another id or another name it begins a call. With neither it belongs to the last call, if the arguments of each call
// before were complete when the next one began. A name or a type that changes, an id of two calls, indexes that fall: all
// that is refused, and so is a piece that may belong to two calls.
//
// A stream is whole when each choice that was asked for has a finish_reason, and then [DONE] came, or the body ended after
// a whole event, or no event came for a second. With [DONE], a choice of text may lack its finish_reason.
//
// # The answer
//
// Annotations, images, citations and logprobs go out with the text that they belong to, behind it, and are dropped with
// it. None goes out in which a call could be found, and logprobs only where their
// tokens are the text. Other members that a provider adds stay here. In a stream, the text of the
// next turn of a run follows the one before behind an empty line ("\n\n"), reasoning too; comments tell which tools
// run. A stream that fails ends by an error event, without [DONE].
package chat
