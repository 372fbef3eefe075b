// Package callback is the face at which tools answer that have taken a call: the
// runtime's side of the callback tool protocol. It translates what they post for
// the kernel, and decides nothing.
//
//	POST /v1/callbacks/{token}
//
// Anyone who has the token of a call may answer it, and needs nothing else: it is keyed,
// names the one call, ends with the time that the call may take, and stands in no
// log, nor in what the tool says where that goes on. What matches no call that waits,
// for whatever reason, and another answer than the first, are answered alike. A body
// is read strictly, but for members that nothing here knows: a tool may speak of more.
package callback

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// Options are what a face works with.
type Options struct {
	Kernel *gateway.Kernel
	// Verify returns the call that a token stands for now, or "".
	Verify func(token string) (callID string)
}

// Face answers requests. It is safe for concurrent use.
type Face struct{ options Options }

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

// keyCall is under what a request carries the call that its token stands for, and
// keyWhose under what it carries who made that.
const (
	keyCall  = "callgate.callback"
	keyWhose = "callgate.callback.whose"
)

// beside is what a message may be longer than its text: the rest of it, and what
// people are shown.
const beside = 1 << 20

// Mount mounts the routes of the face.
func (f *Face) Mount(d *server.Server) {
	d.Mount(server.Route{
		// Whatever is below the path is a token, if no good one.
		Method: http.MethodPost, Path: "/v1/callbacks/*token", Pool: server.Reserved, Public: true,
		// Every byte of a result may be an escape of six.
		MaxBody: func() int { return int(6*f.options.Kernel.MaxCallbackBytes() + beside) },
		Admit:   f.admit, Refuse: refuse, Serve: f.serve,
		// What answers the calls of one caller takes nothing from the calls of others.
		ClientKey: func(c *gin.Context) string { return c.GetString(keyWhose) },
	})
}

// admit looks at the token before anything is read of what comes with it.
func (f *Face) admit(c *gin.Context) *refusal.Error {
	id := f.options.Verify(token(c))
	if id == "" {
		return unmatched()
	}
	whose, err := f.options.Kernel.CallOwner(c.Request.Context(), id)
	if err != nil {
		return refusal.From(refusal.Execute, err)
	}
	c.Set(keyCall, id)
	c.Set(keyWhose, whose)
	return nil
}

// token is what stands behind the path of the face.
func token(c *gin.Context) string { return strings.TrimPrefix(c.Param("token"), "/") }

// unmatched is the one refusal for all that matches nothing.
func unmatched() *refusal.Error {
	return refusal.New(refusal.NotFound, "Nothing is waited for here.")
}

func (f *Face) serve(c *gin.Context, a server.Request) {
	m, refused := read(a.Body, token(c))
	if refused != nil {
		refuse(c, refused)
		return
	}
	p := gateway.CallbackMessage{CallID: c.GetString(keyCall), ID: m.id, Group: m.group, Digest: m.digest}
	if err := m.post(c.Request.Context(), f.options.Kernel, p); err != nil {
		refuse(c, refusal.From(refusal.Execute, err))
		return
	}
	c.Header(server.HeaderCallID, p.CallID)
	c.Data(http.StatusOK, contentJSON, []byte("{}\n"))
}

const contentJSON = "application/json; charset=utf-8"

// refuse answers with a code and what it means. What was answered otherwise before is
// not told from what does not match: only the log does.
func refuse(c *gin.Context, refused *refusal.Error) {
	server.LogRefusal(c, refused)
	server.RetryAfter(c, refused)
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
