package runs

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// Face answers requests for runs. It is safe for concurrent use.
type Face struct {
	Executor *calls.Executor
	Log      *Log
	// Refuse writes a refusal in Callgate's own shape.
	Refuse func(*gin.Context, *refusal.Error)
}

// Mount mounts the route of the face.
func (f *Face) Mount(s *server.Server) {
	s.Mount(server.Route{Method: http.MethodGet, Path: "/v1/runs/:id", Pool: server.Reserved, Refuse: f.Refuse, Serve: f.find})
}

// find answers with a run. For another principal's id the answer is the same as for an unknown
// one.
func (f *Face) find(c *gin.Context, request server.Request) {
	admission, err := f.Executor.Kernel.AdmitQuery(c.Request.Context(), request.Request)
	if err != nil {
		f.Refuse(c, refusal.From(refusal.Request, err))
		return
	}
	run := f.Log.Find(admission.Principal(), c.Param("id"))
	if run == nil {
		f.Refuse(c, refusal.New(refusal.NotFound, "There is no such run here: it is another gateway's, too old, or was never made."))
		return
	}
	body, err := wrapper.Marshal(run)
	if err != nil {
		f.Refuse(c, refusal.From(refusal.Any, err))
		return
	}
	server.SetHeader(c, server.HeaderRunID, run.ID)
	c.Data(http.StatusOK, "application/json; charset=utf-8", append(body, '\n'))
}
