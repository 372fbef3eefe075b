// Package native is the face of Callgate's own wire format: it translates HTTP
// to the kernel and back, and decides nothing.
//
//	POST /v1/check              judges, and executes nothing
//	POST /v1/calls              judges and executes
//	GET  /v1/calls/{id}         what became of a call
//	GET  /v1/calls/{id}/events  the same, as it happens
//	POST /v1/calls/{id}/resume  takes one up that people have approved
//	POST /v1/calls/{id}/cancel  calls one off whose tool is to call back
//	POST /v1/calls/{id}/choice  answers what its tool asks a person
//	POST /v1/threads/close      tells every callback server that a thread is closed
//	GET  /v1/tools              what an agent may use
//
// Bodies are read strictly and never bound. Every refusal has the one shape that models
// read, and the HTTP status of its code.
package native

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

// Options are the settings of a face.
type Options struct {
	Executor *calls.Executor
	Log      *slog.Logger
}

// Face answers requests. It is safe for concurrent use.
type Face struct{ options Options }

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

// Mount mounts the routes of the face.
func (f *Face) Mount(d *server.Server) {
	for _, r := range f.routes() {
		d.Mount(r)
	}
}

func (f *Face) routes() []server.Route {
	routes := []server.Route{
		{Method: http.MethodPost, Path: "/v1/check", Serve: completion(f.check)},
		{Method: http.MethodPost, Path: "/v1/calls", Serve: completion(f.calls)},
		{Method: http.MethodGet, Path: "/v1/calls/:id", Pool: server.Reserved, Serve: f.lookup},
		{Method: http.MethodGet, Path: "/v1/calls/:id/events", Pool: server.Streams, Serve: f.events},
		{Method: http.MethodPost, Path: "/v1/calls/:id/resume", Serve: f.resume},
		{Method: http.MethodPost, Path: "/v1/calls/:id/cancel", Pool: server.Reserved, Serve: f.cancel},
		{Method: http.MethodPost, Path: "/v1/calls/:id/choice", Serve: f.choose, MaxBody: func() int { return maxChoiceBody }},
		{Method: http.MethodPost, Path: "/v1/threads/close", Pool: server.Reserved, Serve: f.closeThread},
		{Method: http.MethodGet, Path: "/v1/tools", Serve: f.tools},
	}
	for i := range routes {
		r := &routes[i]
		r.Refuse, r.ExtraHeaders = Refuse, []string{headerFinish}
		if completes := r.Path == "/v1/check" || r.Path == "/v1/calls"; completes {
			r.MaxBody = func() int { return MaxBody(f.options.Executor.Kernel.ParserOptions().MaxBytes) }
			r.MediaTypes, r.ExpectedMedia = []string{mediaJSON, mediaText}, "application/json, or text/plain for the completion as it is"
		}
	}
	return routes
}

func (f *Face) check(c *gin.Context, a completionRequest) {
	report := f.options.Executor.Kernel.Check(c.Request.Context(), a.Request)
	server.SetHeader(c, server.HeaderCallID, report.CallID)
	if r := report.Refusal; r != nil &&
		(r.Code == refusal.Unauthenticated || r.Code == refusal.CallerRateLimited ||
			r.Stage == refusal.Identity && (r.Code == refusal.LimiterUnavailable || r.Code == refusal.Internal)) {
		Refuse(c, r)
		return
	}
	server.LogRefusal(c, report.Refusal)
	f.answer(c, http.StatusOK, checked{ID: a.id, Report: report})
}

func (f *Face) calls(c *gin.Context, a completionRequest) {
	key, refused := idempotencyKey(c.Request)
	if refused != nil {
		Refuse(c, refused)
		return
	}
	wait, refused := preferredWait(c.Request.Header)
	if refused != nil {
		Refuse(c, refused)
		return
	}
	f.outcome(c, a.id, f.options.Executor.HandleWaiting(c.Request.Context(), a.Request, key, waitAt(wait, a.slot)))
}

// resume takes up a call that asked people for their approval.
func (f *Face) resume(c *gin.Context, a server.Request) {
	wait, refused := preferredWait(c.Request.Header)
	if refused != nil {
		Refuse(c, refused)
		return
	}
	o, err := f.options.Executor.Resume(c.Request.Context(), a.Request, c.Param("id"), waitAt(wait, a.Slot))
	if err != nil {
		Refuse(c, refusal.From(refusal.Request, err))
		return
	}
	f.outcome(c, nil, o)
}

// outcome answers with the outcome of a call.
func (f *Face) outcome(c *gin.Context, id json.RawMessage, o calls.Outcome) {
	server.SetHeader(c, server.HeaderCallID, o.CallID)
	server.LogRefusal(c, o.Refusal)
	if o.Refusal != nil {
		server.RefusalHeaders(c, o.Refusal)
	}
	switch {
	case o.ApprovalRequest != nil:
		f.answer(c, http.StatusAccepted, state{ID: id, CallID: o.CallID, State: calls.StateApproval, Approval: approvalOf(o.ApprovalRequest)})
	case o.Pending:
		f.answer(c, o.Status, state{ID: id, CallID: o.CallID, State: calls.StatePending})
	case o.Result == nil:
		text := string(o.Text)
		f.answer(c, o.Status, acted{ID: id, Text: &text})
	default:
		f.result(c, o.Status, id, o.Value)
	}
}

func (f *Face) lookup(c *gin.Context, a server.Request) {
	call, err := f.options.Executor.Lookup(c.Request.Context(), a.Request, c.Param("id"))
	f.writeStatus(c, call, err)
}

func (f *Face) cancel(c *gin.Context, a server.Request) {
	call, err := f.options.Executor.Cancel(c.Request.Context(), a.Request, c.Param("id"))
	f.writeStatus(c, call, err)
}

// closeThread answers before any server has been told.
func (f *Face) closeThread(c *gin.Context, a server.Request) {
	if err := f.options.Executor.CloseThread(c.Request.Context(), a.Request); err != nil {
		Refuse(c, refusal.From(refusal.Request, err))
		return
	}
	f.answer(c, http.StatusAccepted, struct{}{})
}

// writeStatus answers with the status of a call.
func (f *Face) writeStatus(c *gin.Context, call calls.CallStatus, err error) {
	if err != nil {
		Refuse(c, refusal.From(refusal.Request, err))
		return
	}
	server.SetHeader(c, server.HeaderCallID, call.ID)
	f.answer(c, http.StatusOK, stateOf(call))
}

func (f *Face) tools(c *gin.Context, a server.Request) {
	tools, err := f.options.Executor.Kernel.Tools(c.Request.Context(), a.Request)
	if err != nil {
		Refuse(c, refusal.From(refusal.Identity, err))
		return
	}
	f.answer(c, http.StatusOK, map[string][]gateway.Tool{"tools": tools})
}
