package chat

import (
	"net/http"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

// wire is the wire of chat completions.
type wire struct{}

// Wire is the wire of chat completions.
var Wire turns.Leader = wire{}

var spec = &turns.Spec{
	Wire: upstream.ChatWire, Rows: []*turns.Row{rowText, rowRefusal, rowSpeech, rowThought, rowCall, rowOther, rowLegacy},
	Own: ownMembers, Forwarded: forwardedMembers, Hooked: []string{"citations"}, Structured: [][]string{{"response_format"}},
	MaxBody: maxBodyBytes, MaxName: 64, Import: "openai",
}

// Spec is of turns.Wire.
func (wire) Spec() *turns.Spec { return spec }

// Error is of turns.Wire.
func (wire) Error(f *turns.Failure, _ string) []byte { return turns.OpenAIError(f) }

// Lead is of turns.Leader.
func (wire) Lead(model string) turns.Led {
	members := rawjson.Object{rawjson.Field("model", rawjson.Quote(model)), rawjson.Field("messages", []byte("[]")),
		rawjson.Field("stream", []byte("true"))}
	return &dialogue{members: members, model: model, stream: true, n: 1}
}

// Face answers requests. It is safe for concurrent use.
type Face struct{ options turns.Options }

// New returns the face of a kernel.
func New(options turns.Options) *Face { return &Face{options: options} }

// Refuse answers a request that did not get as far as a face of OpenAI's API, in its shape.
var Refuse = turns.Refuse(Wire)

// Mount mounts the routes of the face.
func (f *Face) Mount(s *server.Server) {
	s.Mount(server.Route{
		Method: http.MethodPost, Path: "/v1/chat/completions", Refuse: Refuse, Serve: turns.Serve(Wire, f.options),
		MaxBody: func() int { return maxBodyBytes }, ExtraHeaders: []string{turns.HeaderMode},
	})
	s.MountAPI(server.API{Prefixes: apiPaths, Refuse: Refuse, Advice: advice})
}

// advice is for clients that ask for another part of the API.
const advice = "Of this API Callgate serves POST /v1/chat/completions, POST /v1/responses, POST /v1/responses/input_tokens and GET /v1/models. " +
	"It passes nothing else on: for the rest, make a second client whose base URL is the provider's own."

// apiPaths are the paths of OpenAI's API, and of Azure's form of it. Its clients read refusals in its
// shape at all of them.
var apiPaths = []string{
	"/openai",
	"/v1/assistants", "/v1/audio", "/v1/batches", "/v1/chat", "/v1/chatkit", "/v1/completions", "/v1/containers", "/v1/conversations",
	"/v1/embeddings",
	"/v1/engines", "/v1/evals", "/v1/files", "/v1/fine_tuning", "/v1/images", "/v1/models", "/v1/moderations", "/v1/organization",
	"/v1/projects", "/v1/realtime",
	"/v1/responses", "/v1/skills", "/v1/threads", "/v1/uploads", "/v1/vector_stores", "/v1/videos", "/v1/webhooks",
}
