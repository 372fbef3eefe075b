// Package callback is the face for the answers of callback tools: Callgate's side of the
// callback tool protocol. It translates their messages for the kernel, and decides nothing.
//
//	POST /v1/callbacks/{token}
//
// Anyone who has the token of a call may answer that call, without any other credential.
// The token is keyed, names one call, expires with the call, and is in no log; it is also
// masked in the tool's text. A message that matches no waiting call, for any reason, and an
// answer that differs from the first get the same response. A body is read strictly, except
// that unknown members are ignored.
package callback

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// Options are the dependencies of a face.
type Options struct {
	Executor *calls.Executor
	// Verify returns the call of a token that is valid now, or "".
	Verify func(token string) (callID string)
}

// Face answers requests. It is safe for concurrent use.
type Face struct{ options Options }

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

// The keys of the gin context for the call of the token, the call's principal and its thread.
const (
	keyCall   = "callgate.callback"
	keyWhose  = "callgate.callback.whose"
	keyThread = "callgate.callback.thread"
)

// beside is the size that a message may have beside its text: its other members, and
// content for people.
const beside = 1 << 20

// Mount mounts the routes of the face.
func (f *Face) Mount(d *server.Server) {
	d.Mount(server.Route{
		// Everything below the path is a token, valid or not.
		Method: http.MethodPost, Path: "/v1/callbacks/*token", Pool: server.Reserved, Public: true,
		// Every byte of a result may be an escape of six.
		MaxBody: func() int { return int(6*f.options.Executor.Kernel.MaxCallbackBytes() + beside) },
		Admit:   f.admit, Refuse: refuse, Serve: f.serve,
		// Callbacks count for the caller of their call, and take no slots from others.
		ClientKey: func(c *gin.Context) string { return c.GetString(keyWhose) },
	})
}

// admit checks the token before any of the body is read.
func (f *Face) admit(c *gin.Context) *refusal.Error {
	id := f.options.Verify(tokenOf(c))
	if id == "" {
		return unmatched()
	}
	whose, thread, err := f.options.Executor.CallOwner(c.Request.Context(), id)
	if err != nil {
		return refusal.From(refusal.Execute, err)
	}
	c.Set(keyCall, id)
	c.Set(keyWhose, whose)
	c.Set(keyThread, thread)
	return nil
}

// tokenOf is the path below the path of the face.
func tokenOf(c *gin.Context) string { return strings.TrimPrefix(c.Param("token"), "/") }

// unmatched is the one refusal for all that matches nothing.
func unmatched() *refusal.Error {
	return refusal.New(refusal.NotFound, "Nothing is waited for here.")
}

func (f *Face) serve(c *gin.Context, a server.Request) {
	m, refused := read(a.Body, tokenOf(c))
	if refused != nil {
		refuse(c, refused)
		return
	}
	p := calls.CallbackMessage{CallID: c.GetString(keyCall), ID: m.id, Group: m.group, Digest: m.digest, Thread: c.GetString(keyThread)}
	if err := m.post(c.Request.Context(), f.options.Executor, p); err != nil {
		refuse(c, refusal.From(refusal.Execute, err))
		return
	}
	c.Header(server.HeaderCallID, p.CallID)
	c.Data(http.StatusOK, contentJSON, []byte("{}\n"))
}

const contentJSON = "application/json; charset=utf-8"

// refuse answers with a code and its message. The response does not show whether the call
// has another answer or does not match: only the log does.
func refuse(c *gin.Context, refused *refusal.Error) {
	server.LogRefusal(c, refused)
	server.RefusalHeaders(c, refused)
	if refused.Code == refusal.NotFound || refused.Code == refusal.IdempotencyConflict {
		refused = unmatched() // the same for every reason
	}
	body, err := wrapper.Marshal(map[string]any{"error": map[string]string{"code": string(refused.Code), "message": refused.Message}})
	if err != nil {
		body = []byte(`{}`) // it always encodes: it holds text
	}
	c.Data(refused.Status(), contentJSON, append(body, '\n'))
	c.Abort()
}
