package app

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/acpproxy"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/gateway/faces/console"
	"github.com/callgate/callgate/gateway/faces/messages"
	"github.com/callgate/callgate/gateway/faces/responses"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit/redislimit"
	"github.com/callgate/callgate/upstream"
)

// Face serves an API on a listener.
type Face interface{ Mount(s *server.Server) }

// ModelFaces are the faces in front of models, by the API that they speak.
func ModelFaces(o turns.Options) map[upstream.Wire]Face {
	return map[upstream.Wire]Face{
		upstream.ChatWire:      chat.New(o),
		upstream.MessagesWire:  messages.New(o),
		upstream.ResponsesWire: responses.New(o),
	}
}

// linked are the other parts that Callgate also goes without: each is a line, and a folder.
var linked = struct {
	acpProxy     func(ctx context.Context, o acp.ProxyOptions, agent acp.Agent, in io.Reader, out io.Writer) error
	console      func(api *admin.API, loopback bool, logger *slog.Logger) (ownHandler, error)
	redisLimiter func(ctx context.Context, redis redisconn.Options, wait time.Duration,
		onChange func(shared bool, cause error)) (sharedLimiter, []string, error)
}{
	acpProxy: acpproxy.Run,
	console: func(api *admin.API, loopback bool, logger *slog.Logger) (ownHandler, error) {
		return console.New(console.Options{API: api, Loopback: loopback, Log: logger})
	},
	redisLimiter: func(ctx context.Context, redis redisconn.Options, wait time.Duration,
		onChange func(shared bool, cause error)) (sharedLimiter, []string, error) {
		return redislimit.New(ctx, redislimit.Options{Options: redis, Clock: time.Now, Wait: wait, OnChange: onChange})
	},
}

// Speaks reports whether this program has the face of an API.
func Speaks(w upstream.Wire) bool { return ModelFaces(turns.Options{})[w] != nil }

// Has reports whether this program has a part.
func Has(p configs.Part) bool {
	switch p {
	case configs.ResponsesFace:
		return Speaks(upstream.ResponsesWire)
	case configs.Console:
		return linked.console != nil
	case configs.ACPProxy:
		return linked.acpProxy != nil
	case configs.RedisLimiter:
		return linked.redisLimiter != nil
	}
	return false
}
