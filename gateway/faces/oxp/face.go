// Package oxp is the face of the Open eXecution Protocol 1.0 (OXP), by which a
// gateway is a tool server: it translates the protocol to the kernel and back, and
// decides nothing.
//
//	GET  /health                          the gateway takes requests; no credential is required
//	GET  /tools                           what the agent may use
//	POST /tools/call                      judges and executes
//	GET  /tools/authorizations/{id}/{n}   the status of an authorization that a call was refused for
//
// Bodies are flat, and the version is a header (OXP-Version), which every answer
// has. They are read strictly: closed, no member twice, bounded. The kernel judges
// the very bytes of the member input.
//
// # Tools
//
// A tool's id is its name in the registry where that is Toolkit.Tool. Other names
// are mapped one to one when the configuration is loaded (registry.OXP). An id with
// @x.y.z is that version, one with @x is x.0.0, and one without is the highest.
//
// # Errors
//
// The three classes of the protocol are never mixed:
//
//	400  nothing was run: the request, its tool, the policy, a limit, or a person who
//	     has to authorize or approve it first (missing_requirements)
//	422  nothing was run: the input is not what the tool's schema asks for
//	     (parameter_errors)
//	200  success: false: the tool was called, and there is no result
//
// Before a request is one of the protocol HTTP has its own: 401 with
// WWW-Authenticate, 404 and 405 for paths and methods, 429 and 503, with
// Retry-After, for a caller or a gateway that has enough to do. Every error carries
// the members of a refusal as everywhere else: code, stage, message, violations.
//
// # Calls
//
// A call_id is an idempotency key of its caller, workspace and project: a repeat gets
// the first answer, and another call under the same id is refused. Refusals before
// dispatch are not kept. A call without one is answered with Callgate's own id, which
// is the key of that call from then on.
package oxp

import (
	"log/slog"

	"github.com/callgate/callgate/gateway/calls"
)

// Options are the settings of a face.
type Options struct {
	Executor *calls.Executor
	Log      *slog.Logger
	// CheckReady returns the reason why no caller can be admitted now, or nil. It may be
	// nil itself.
	CheckReady func() error
	// URL returns this gateway's URL, without a slash at its end, as callers reach it to
	// ask for the status of an authorization. If it is empty, or URL is nil, they get no
	// URL to ask at.
	URL func() string
}

// Face answers requests. It is safe for concurrent use.
type Face struct{ options Options }

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

const (
	pathHealth = "/health"
	pathTools  = "/tools"
	pathCall   = "/tools/call"
	pathChecks = "/tools/authorizations/"
)
