package native

import (
	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// viewStream sends the views of a call's thread in the stream of the call.
type viewStream struct {
	follower *calls.Follower
	views    *calls.ViewFollower
	changed  <-chan struct{} // is closed when there may be other views; nil: there are none
}

// begin follows the views of a call, once it is known.
func (v *viewStream) begin(follower *calls.Follower, call calls.CallStatus) {
	if v.views == nil {
		v.follower, v.views = follower, follower.Views(call)
	}
}

// send writes the views that have changed. It is false where nothing more can be written.
func (v *viewStream) send(c *gin.Context, w *sse.Writer) bool {
	if v.views == nil {
		return true
	}
	latest, changed := v.views.Next()
	v.changed = changed
	if len(latest) == 0 {
		return true
	}
	if err := v.follower.CheckAccess(c.Request.Context()); err != nil {
		server.LogRefusal(c, refusal.From(refusal.Request, err))
		return false
	}
	for _, view := range latest {
		data, err := wrapper.Marshal(view)
		if err != nil || w.Send(sse.AppendEvent(nil, "view", data)) != nil {
			return false
		}
	}
	return true
}
