package acp

import (
	"log/slog"
	"sync"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/upstream"
)

// Options are the settings of a face.
type Options struct {
	Executor *calls.Executor
	// Chat runs the prompts, in front of a model that speaks chat completions.
	Chat turns.Prompter
	// Upstreams are the models that can be requested now.
	Upstreams func() *upstream.Set
	// Model is the one that is requested.
	Model string
	// Images says that the model takes images.
	Images bool
	// ContextTokens is how many tokens the model's context holds; 0: not known, and clients are not
	// told how full it is.
	ContextTokens uint64
	// Accepted reports whether tools of a server that a client names are served here: it was
	// accepted by the operator.
	Accepted func(wire.MCPServer) bool
	// Folder is where sessions are kept, in a folder for each subject.
	Folder  string
	Version string // of this program
	Logger  *slog.Logger
}

// Face serves clients. It is safe for concurrent use.
type Face struct {
	options    Options
	sessionsMu sync.Mutex // held while kept sessions are read or changed
}

// New returns a face.
func New(o Options) *Face { return &Face{options: o} }
