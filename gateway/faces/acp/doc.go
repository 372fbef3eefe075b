// Package acp is the face for an editor: it is an agent of the Agent Client Protocol (version 1) on a
// pair of streams, over the loop of gateway/turns in front of a model that speaks chat completions.
//
// # What the client sees
//
// A prompt is one run of a turns.Prompter, in which Callgate runs the tools. Text goes out as it is
// released, reasoning where the upstream gives it. A call of a tool is reported when it was judged,
// before it runs: pending, in_progress, then completed or failed. A refused call is failed, with
// the refusal as its content, also where the model gets another chance. Nothing else decides about a
// call than the kernel: this package translates.
//
// Rules that callers answer ask the client by session/request_permission, and the answer is read by
// the kind of the chosen option. A call that waits for approvers stays pending, and names their page.
//
// Tools of type acp read and write files and run commands by the client, as far as it offers that;
// to a client that does not, they are not offered to the model, and their calls are refused.
//
// # Sessions
//
// A session is a conversation in one folder, which must lie within the roots of the project, as must
// its further folders. One prompt runs in a session at a time. Sessions are kept in files of the data
// folder, so that they can be listed, loaded with all that was shown, and resumed.
//
// # Ends
//
// session/cancel, session/close and the end of the connection stop the model, and questions to the
// client; calls that were dispatched are completed and recorded, others are not run, which is recorded
// too. The prompt is answered behind its last update.
package acp
