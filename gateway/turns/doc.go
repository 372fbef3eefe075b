// Package turns is what the faces in front of a model share: the loop that requests turns of
// the model until one is the answer, and between them repairs refused ones or runs tools; and what is done to a
// reply, of any wire.
//
// # What a wire adds
//
// A Wire reads and writes: it reads requests into a Dialogue, and replies by a Reader into the model of this package
// (Reply, Answer, Part); a Writer writes what passed. Its Spec says the rest as data. A type of part is a Row, whose Kind
// decides alone how such parts are judged, held and shown. Nothing here knows a wire by its name. Serve answers
// requests over a wire, and Options.Prompt runs prompts of a conversation that a face leads itself. The least that a wire
// is made of is in test/replies/invented; package upstream lists the wires, and the endpoints where models are asked in them.
//
// Judged are parts alone: texts, refusals, transcripts and calls. Whatever else a reply states, its id, its model, why it
// ended, what it took and members beside its parts, goes to the application as the wire writes it. The wire sees to it
// that none of it could be read as a call (rawjson.IsProse, rawjson.HoldsNoCall), and drops what it does not know.
//
// A reader tells of a stream by deltas. Each text grows by a delta, in the order of the parts; a call, and a part that
// the upstream's entry may refuse, begins by one. A reply that breaks this, or has a part of no kind, is the wire's
// fault, and fails the run with the code internal, as a panic of the wire does. Calls without ids of their own are
// refused.
//
// Text goes to a Writer only as far as the kernel has released it: in a stream piece by piece, up to the first call,
// and the rest after the verdict on the whole answer. Calls, refusals and speech follow then, all or none. Everything
// waits for the verdict with stream_buffer: whole, where a call is required, where the answer is to be JSON, where text beside calls is
// dropped, where calls are shown as content, and where hooks see the texts of an ordered wire. Thoughts are not judged: they go out as they
// come, until the text is refused. The text of a turn whose calls run is shown before they do.
//
// A final answer that the request asks to be JSON (Spec.Structured) is judged by that schema, with structured_output: judge.
// One that ended before the model was done is, where it is whole JSON.
//
// Speech is judged by its transcript, as text is. Of several answers each is judged; where one is refused, its refusal is
// the answer at once. With refusals: message the application gets a final answer with a text of Callgate in place of the
// error of a refused answer; text that was sent before stays above it.
//
// A wire whose parts have an order (Spec.Ordered) is told of the beginning and the end of each. Nothing overtakes the text in
// front of it: what came behind a text that the kernel still holds waits in a queue. What the provider asks to be allowed is
// judged by itself and answered, and the model is asked again.
//
// # What Serve does, in this order
//
// It admits the caller, before anything of the body is looked at, then reads the request, opens the run for its model,
// checks members, mode and rules of the route, takes the tools, narrows the choice, and begins the conversation. Each error
// is a *Failure, and nothing was requested. Then it requests turns, and writes the last one, or the failure: in the stream if
// that has begun, else with its status, or the provider's own error byte for byte. A failure with a Message is no error to the
// application (refusals: message).
//
// # What Turns does
//
// It calls Source.RequestTurn, and goes by the decisions of the turn that it returns:
//
//   - One is refused: the turn goes back to the model by Source.Append, with an outcome for
//     each input, or the run fails. It fails where the turn is Final, where another answer of
//     the model could not pass either (RepairableRefusal), after Rules.MaxRepairs refused turns
//     in a row, and where the model repeats one refused call.
//   - The application runs the calls, or there are none: the decisions are handed over, and
//     this turn is the answer.
//   - Callgate runs the calls: they are executed, all of the turn, and Source.Append gets
//     their outcomes. From there on they do not end with the application's request.
//
// After each turn that is not the answer the bounds are checked: bytes added, tokens, wall
// time. The bound of turns is a constraint on the next judgement (Constraints).
//
// # What a source may rely on, and must keep to
//
// A run is one goroutine, which calls the methods of both. Signs of life are sent by another while a function that is given
// to Wait runs; that function must not write to the application. Nothing is locked.
//
// RequestTurn judges with Constraints, each choice by one Judge or Stream.Close, all calls of
// a choice together (they pass all or none). It returns a turn only if the model's answer is
// complete, and an error otherwise; it must release or record what it judged until then. No
// byte of a call is sent before Turns has returned the turn as the answer; text that was
// released may be sent at once, and then the turn is Final. Errors: a *refusal.Error, an
// *upstream.StatusError, or a *Failure.
//
// Append concerns the turn that was returned last. It adds what the model sent, as it was
// received, and one result for each of its calls, also for those that would have passed
// (Feedback). The wires refuse a conversation with a call and no result (AM-73, RS-90).
//
// A decision that RequestTurn returned is executed, handed over or released by Turns.
package turns
