package app

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/upstream"
)

// ACP says how one client of the Agent Client Protocol is served.
type ACP struct {
	Subject gateway.Subject
	// Model is the one that is requested; empty: the only one that the upstreams list.
	Model string
	// Images says that the model takes images.
	Images bool
	// ContextTokens is how many tokens its context holds; 0: not known.
	ContextTokens uint64
}

// ServeACP serves one client of the Agent Client Protocol on a reader and a writer, over the loop in
// front of a model, until the client leaves or ctx ends.
func ServeACP(ctx context.Context, path string, loaded *configs.Config, a ACP, stdin io.Reader, stdout io.Writer, o Options) (err error) {
	if a.Model, err = chatModel(loaded.Upstreams, a.Model); err != nil {
		return err
	}
	servers := &namedServers{}
	servers.names.Store(&loaded.Servers)
	followers := func(h *Runtime) []subscriber {
		h.serveModels(loaded)
		return []subscriber{h.followModels, servers.follow}
	}
	return serveOne(ctx, path, loaded, "acp", a.Subject, o, followers, func(h *Runtime, request gateway.Request) error {
		h.awaitServers(ctx)
		client := upstream.NewClient(upstream.Options{ReadSecret: h.secrets.Resolve})
		defer client.Close()
		face := acp.New(acp.Options{
			Turns: turns.Options{Executor: h.Executor, Upstreams: h.models.Load, Client: client, Budgets: h.budgets.ledger},
			Wire:  chat.Wire,
			Model: a.Model, Images: a.Images, ContextTokens: a.ContextTokens, Accepted: servers.accepted,
			Folder: filepath.Join(h.folder, "sessions"), Version: o.Version, Logger: o.Logger,
		})
		in := h.announcing(stdin, o.Logger)
		return h.answerUntil(ctx, loaded.Server.ShutdownTimeout, func() error { return face.Serve(ctx, request, in, stdout) })
	})
}

// chatModel settles the model that is requested: it must be there, speak chat completions, and have
// Callgate run its tools. The error says what to change.
func chatModel(models *upstream.Set, model string) (string, error) {
	if model == "" {
		listed := models.Models()
		if len(listed) != 1 {
			return "", fmt.Errorf("the upstreams list %d models by name: say which one by --model", len(listed))
		}
		model = listed[0].ID
	}
	route, ok := models.Lookup(model)
	switch {
	case !ok:
		return "", fmt.Errorf("--model: no upstream has the model %q; upstreams are in the file that the key upstreams names", model)
	case !route.Speaks(upstream.ChatWire):
		return "", fmt.Errorf("--model: the upstream %s of the model %q does not speak chat completions, and nothing is translated: add chat to its key speaks", route.Upstream, model)
	case !slices.Contains(route.Rules.Modes, upstream.Orchestrate):
		return "", fmt.Errorf("--model: the upstream %s of the model %q does not have Callgate run tools: add orchestrate to its key modes",
			route.Upstream, model)
	}
	return model, nil
}

// namedServers are the tool servers of the configuration of now.
type namedServers struct {
	names atomic.Pointer[[]lockfile.Server]
}

func (n *namedServers) follow(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	return change{commit: func() { n.names.Store(&c.Servers) }, abort: doNothing}, nil
}

// accepted reports whether a server that a client names is one of the configuration: the same
// program with the same arguments, or the same URL. Nothing else that the client says of it is used.
func (n *namedServers) accepted(named wire.MCPServer) bool {
	return slices.ContainsFunc(*n.names.Load(), func(s lockfile.Server) bool {
		switch {
		case s.Type != lockfile.MCP:
			return false
		case named.Transport == wire.Stdio:
			return slices.Equal(s.Command, append([]string{named.Command}, named.Args...))
		}
		return named.Transport == wire.HTTP && s.URL != "" && s.URL == named.URL
	})
}
