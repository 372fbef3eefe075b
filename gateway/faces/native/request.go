package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/threads"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// headerFinish is why the model stopped.
const headerFinish = "Callgate-Finish-Reason"

// memberHeaders replace the members of a JSON body.
var memberHeaders = []string{server.HeaderAgent, server.HeaderWorkspace, server.HeaderProject, headerFinish, server.HeaderID,
	server.HeaderThread, server.HeaderAncestors, server.HeaderUser}

const (
	mediaJSON = "application/json"
	mediaText = "text/plain"
)

// completionRequest is a request with a completion, as it was read.
type completionRequest struct {
	gateway.Request
	slot server.Slot
	id   json.RawMessage // to be echoed; nil when there is none
}

func bad(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...))
}

// completion reads the completion of a request before it is served.
func completion(serve func(*gin.Context, completionRequest)) func(*gin.Context, server.Request) {
	return func(c *gin.Context, received server.Request) {
		a, refused := read(c.Request.Header, received)
		if refused != nil {
			Refuse(c, refused)
			return
		}
		serve(c, a)
	}
}

// read reads a completion, from a JSON body or as the raw body.
func read(header http.Header, received server.Request) (completionRequest, *refusal.Error) {
	a := completionRequest{Request: received.Request, slot: received.Slot}
	if received.Media == mediaText {
		if a.ID != "" {
			a.id, _ = json.Marshal(a.ID) // a string cannot fail
		}
		a.Inputs = []gateway.Input{{Completion: received.Body, Truncated: parser.Truncates(header.Get(headerFinish))}}
		return a, nil
	}
	for _, name := range memberHeaders {
		if _, found := header[name]; found {
			return a, bad("The header %s is for text/plain; a JSON body says it itself.", name)
		}
	}
	b, err := ReadBody(received.Body)
	switch {
	case errors.Is(err, errBareCall):
		return a, bad(`The body is not a request: %v. Send the completion as text/plain, or as {"completion":"…"}.`, err)
	case err != nil:
		return a, bad("The body is not a request: %v.", err)
	}
	if err := threads.CheckAncestors(b.Thread, b.Ancestors); err != nil {
		return a, bad("The body is not a request: %v.", err)
	}
	a.Subject = gateway.Subject{Agent: b.Agent, Workspace: b.Workspace, Project: b.Project}
	a.id, a.Thread, a.Ancestors, a.User = b.ID, b.Thread, b.Ancestors, b.User
	if b.ID != nil {
		_ = json.Unmarshal(b.ID, &a.ID) // it is a string
	}
	a.Inputs = []gateway.Input{{Completion: b.Completion, Truncated: parser.Truncates(b.FinishReason)}}
	return a, nil
}

// maxKey bounds an idempotency key.
const maxKey = 255

// idempotencyKey reads the key of a request: printable ASCII of bounded length.
func idempotencyKey(r *http.Request) (string, *refusal.Error) {
	values := r.Header[server.HeaderKey]
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if key == "" || len(key) > maxKey || !ascii.IsVisible(key) {
		return "", bad("The header %s must be 1 to %d printable ASCII characters without spaces.", server.HeaderKey, maxKey)
	}
	return key, nil
}
