package callback

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/tool"
)

// Cancel notifies the server of a call, once, that its answer is no longer needed, and
// ignores the response. Servers of other calls in the same thread are not notified.
func (c *Client) Cancel(ctx context.Context, call tool.Call) {
	own := tool.Server{URL: call.Run.URL, Credential: call.Run.Credential, Addresses: call.Run.Addresses}
	if base := c.serverURL(call.Run.Server); base != "" {
		own.Name, own.URL = call.Run.Server, base
	}
	if at, err := notificationURL(own, "/cancel_tool_call"); err == nil {
		c.notify(ctx, own, at, map[string]string{"thread_id": call.Thread, "tool_call_id": call.ID})
	}
}

// notify posts a notification to a server, once.
func (c *Client) notify(ctx context.Context, server tool.Server, at *url.URL, content map[string]string) {
	body, err := json.Marshal(content)
	if err != nil {
		return
	}
	request := outbound.NewRequest(ctx, http.MethodPost, at, body)
	if err := c.out.Authorize(request, server.Credential); err != nil {
		return
	}
	if response, _, err := c.out.Send(request, server.Addresses, true); err == nil {
		_ = response.Body.Close() // its content does not matter
	}
}

// serverURL is the URL of a server by its name; empty if it is not known.
func (c *Client) serverURL(name string) string {
	if name == "" || c.base == nil {
		return ""
	}
	return c.base(name)
}

// notificationURL is the URL of a notification: below the server, or, for a tool that is stated
// by itself, beside its endpoint.
func notificationURL(server tool.Server, path string) (*url.URL, error) {
	u, err := url.Parse(server.URL)
	if err != nil {
		return nil, err
	}
	if server.Name == "" {
		u.Path = u.Path[:strings.LastIndexByte("/"+u.Path, '/')]
	}
	u.Path, u.RawPath, u.RawQuery, u.Fragment = strings.TrimSuffix(u.Path, "/")+path, "", "", ""
	return u, nil
}
