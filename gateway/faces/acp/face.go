package acp

import (
	"log/slog"
	"sync"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/wire"
)

// Options are the settings of a face.
type Options struct {
	// Turns are the settings of the runs of prompts, and Wire is what their model speaks.
	Turns turns.Options
	Wire  turns.Leader
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
