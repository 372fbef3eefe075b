// Package models lists the models that can be requested.
//
//	GET /v1/models  the models that can be requested by name
package models

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// Options are the settings of a face.
type Options struct {
	Executor *calls.Executor
	// Upstreams returns the models that can be requested now; a nil Set has none.
	Upstreams func() *upstream.Set
	// Refuse writes a refusal in OpenAI's shape.
	Refuse func(*gin.Context, *refusal.Error)
}

// Face answers requests. It is safe for concurrent use.
type Face struct{ options Options }

// New returns the face of a kernel.
func New(options Options) *Face { return &Face{options: options} }

// Mount mounts the routes of the face.
func (f *Face) Mount(s *server.Server) {
	s.Mount(server.Route{Method: http.MethodGet, Path: "/v1/models", Refuse: f.options.Refuse, Serve: f.models})
}

const contentJSON = "application/json; charset=utf-8"

// models lists the models that can be requested by their names.
func (f *Face) models(c *gin.Context, request server.Request) {
	if _, err := f.options.Executor.Admit(c.Request.Context(), request.Request); err != nil {
		f.options.Refuse(c, refusal.From(refusal.Any, err))
		return
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{}}
	for _, m := range f.options.Upstreams().Models() {
		list.Data = append(list.Data, model{ID: m.ID, Object: "model", OwnedBy: m.Upstream})
	}
	body, err := wrapper.Marshal(list)
	if err != nil {
		f.options.Refuse(c, refusal.From(refusal.Any, err))
		return
	}
	c.Data(http.StatusOK, contentJSON, append(body, '\n'))
}
