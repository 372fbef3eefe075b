package chat

import "github.com/callgate/callgate/gateway/turns"

// The members of an answer that are passed on beside text and calls. Members that are not
// listed are dropped. A listed one is passed on if no later reader can find a call in it,
// and not before the text that it belongs to.
var (
	forwardedWords    = []string{"system_fingerprint", "service_tier"} // of an answer; each one word
	forwardedOfAnswer = []string{"citations", "prompt_filter_results"}
	forwardedOfChoice = []string{"content_filter_results"}
	forwardedOfText   = []string{"annotations", "images", "extra_content", "thought_signature"}
	forwardedOfCall   = []string{"extra_content"}
	// reasoningMembers is never read for calls, and passed on as it comes.
	reasoningMembers = []string{"reasoning", "reasoning_content", "reasoning_details"}
)

// Members that are read apart.
const (
	memberLogprobs = "logprobs" // of a choice: shown beside the text whose tokens they are
	memberAudio    = "audio"
	memberData     = "data" // of audio
	kindFunction   = "function"
)

// The types of parts of an answer.
var (
	rowText    = &turns.Row{Type: "content", Kind: turns.Text, Hooked: []string{"annotations"}}
	rowRefusal = &turns.Row{Type: "refusal", Kind: turns.Refusal}
	rowSpeech  = &turns.Row{Type: memberAudio, Kind: turns.Speech, Spoken: []string{memberData}}
	rowThought = &turns.Row{Type: "reasoning", Kind: turns.Thought, Hooked: reasoningMembers}
	rowCall    = &turns.Row{Type: kindFunction, Kind: turns.Call, Called: "the member tool_calls"}
	rowOther   = &turns.Row{Type: "other", Kind: turns.Stray, Called: "a type that is not function"}
	rowLegacy  = &turns.Row{Type: "function_call", Kind: turns.Stray, Called: "the legacy member function_call"}
)
