package mcp

import (
	"time"

	"github.com/callgate/callgate/gateway/calls"
)

// Options are what a face works with.
type Options struct {
	Executor *calls.Executor
	// Version is of this program, for clients that ask.
	Version string
	// AnswerTimeout is how long a client older than 2026-07-28 has for its answers to what
	// a tool asks; 0 is five minutes.
	AnswerTimeout time.Duration
	// RegistryNames has tools listed and called by the names of the registry, dots
	// included, instead of by their wire names.
	RegistryNames bool
	// ProtectedResource says where clients get the tokens that they are asked for; nil, where
	// they are asked for none.
	ProtectedResource *ProtectedResource
}

// Face answers messages. It is safe for concurrent use.
type Face struct {
	options   Options
	pending   pendingQuestions
	logLevels logLevels
}

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

const (
	path        = "/mcp"
	contentJSON = "application/json"
	// envelopeBytes is what a message may hold beside the arguments of a call: answers to its
	// tool's questions among that.
	envelopeBytes = maxResponsesBytes + 64<<10
)

// maxMessageBytes is how long a message may be: a longest call, and what is around it.
func (f *Face) maxMessageBytes() int {
	return f.options.Executor.ParserOptions().MaxBytes + envelopeBytes
}
