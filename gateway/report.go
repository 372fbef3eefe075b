package gateway

import (
	"github.com/callgate/callgate/refusal"
)

// Report is the verdict on one completion with the stages that led to it. It
// marshals to the answer of /v1/check.
type Report struct {
	Verdict Verdict        `json:"verdict"`
	Call    *Call          `json:"call,omitempty"`
	Refusal *refusal.Error `json:"error,omitempty"`
	Stages  []StageReport  `json:"stages"`
	// Text is the completion, when the verdict is text.
	Text []byte `json:"-"`
	// Digest is of the configuration that judged.
	Digest string `json:"-"`
}

// StageReport says of one stage that it was run, how it ended, and how long it
// took.
type StageReport struct {
	Stage  refusal.Stage `json:"stage"`
	OK     bool          `json:"ok"`
	Micros int64         `json:"micros"`
}
