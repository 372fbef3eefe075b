package mcp

import (
	"time"

	"github.com/callgate/callgate/gateway/calls"
)

// Options are the settings of a face.
type Options struct {
	Executor *calls.Executor
	// Version is the version of this program, for clients that ask.
	Version string
	// AnswerTimeout is how long a client older than 2026-07-28 has to answer a tool's
	// questions; 0 is five minutes.
	AnswerTimeout time.Duration
	// RegistryNames has tools listed and called by the names of the registry, dots
	// included, instead of by their wire names.
	RegistryNames bool
	// ProtectedResource tells clients where to get tokens; nil if no tokens are required.
	ProtectedResource *ProtectedResource
}

// Face answers messages. It is safe for concurrent use.
type Face struct {
	options   Options
	pending   pendingQuestions
	logLevels logLevels
	changed   chan struct{} // holds one: lists of tools may have changed
}

// New returns the face of a kernel.
func New(options Options) *Face {
	if options.AnswerTimeout <= 0 {
		options.AnswerTimeout = defaultAnswerTimeout
	}
	return &Face{options: options, changed: make(chan struct{}, 1)}
}

// ToolsChanged has the client of Stdio told that its list of tools may have changed. It does not block.
func (f *Face) ToolsChanged() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

const (
	path        = "/mcp"
	contentJSON = "application/json"
	// envelopeBytes bounds the rest of a message, beside the arguments of a call. It
	// includes answers to its tool's questions, and the state of a call that waits for people.
	envelopeBytes = maxResponsesBytes + 64<<10
)

// maxMessageBytes bounds a message: the longest call and its envelope.
func (f *Face) maxMessageBytes() int {
	return f.options.Executor.Kernel.ParserOptions().MaxBytes + envelopeBytes
}
