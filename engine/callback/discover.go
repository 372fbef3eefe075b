package callback

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

const (
	toolsetPath     = "/.well-known/rap-toolset"
	maxToolsetBytes = 4 << 20
	maxToolsetDepth = 200
	maxToolsetName  = 128
	maxToolsetTools = 1024
)

// operationName is the grammar of a tool's name. The protocol forbids spaces and special
// characters without defining these.
var operationName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Discover reads the toolset of a server and validates it whole: one invalid tool rejects
// all. Members other than names, descriptions and schemas are for people, and are
// ignored.
func (c *Client) Discover(ctx context.Context, s tool.Server) ([]tool.Definition, error) {
	base, err := outbound.ParseURL(s.URL)
	if err != nil {
		return nil, err
	}
	body, err := c.toolset(ctx, s, base)
	if err != nil {
		return nil, fmt.Errorf("its toolset cannot be fetched from %s: %w", outbound.Origin(base), err)
	}
	value, err := parser.ReadValue(body, maxToolsetDepth)
	if err != nil {
		return nil, &tool.InvalidListError{Err: fmt.Errorf("its toolset is not strict JSON: %w", err)}
	}
	object, _ := value.(map[string]any)
	t := toolset{members: object}
	found := t.read(base, s)
	if t.fault != nil {
		return nil, &tool.InvalidListError{Err: fmt.Errorf("its toolset is not valid, so that none of its tools is loaded: %w", t.fault)}
	}
	return found, nil
}

// toolset fetches the toolset.
func (c *Client) toolset(ctx context.Context, s tool.Server, base *url.URL) ([]byte, error) {
	at := *base
	at.Path, at.RawPath, at.RawQuery, at.Fragment = strings.TrimSuffix(base.Path, "/")+toolsetPath, "", "", ""
	body, _, err := c.out.FetchJSON(outbound.NewRequest(ctx, http.MethodGet, &at, nil), s.Credential, s.Addresses, maxToolsetBytes)
	return body, err
}

// toolset is a toolset that is being validated. The first fault stays.
type toolset struct {
	members map[string]any
	fault   error
}

func (t *toolset) fail(format string, args ...any) {
	if t.fault == nil {
		t.fault = fmt.Errorf(format, args...)
	}
}

func (t *toolset) read(base *url.URL, s tool.Server) []tool.Definition {
	if t.members == nil {
		t.fail("found no object")
		return nil
	}
	t.name("the toolset", t.members)
	t.text("the toolset", t.members, "description", false)
	if v, stated := t.members["needsMigration"]; stated {
		if _, flag := v.(bool); !flag {
			t.fail("the toolset's needsMigration is no boolean")
		}
	}
	endpoint := t.endpoint(base, s)
	list, _ := t.members["tools"].([]any)
	if len(list) == 0 || len(list) > maxToolsetTools {
		t.fail("found %d tools; expected 1 to %d", len(list), maxToolsetTools)
		return nil
	}
	var found []tool.Definition
	names := map[string]bool{}
	for i, item := range list {
		d := t.tool(fmt.Sprintf("tool %d", i+1), item)
		if names[d.Name] {
			t.fail("tool %d has the name of one before it", i+1)
		}
		names[d.Name], d.Endpoint = true, endpoint
		found = append(found, d)
	}
	return found
}

// endpoint is the URL of the calls. It may be elsewhere than the toolset, but not without
// TLS if the toolset has TLS, and not on another server if there is a credential.
func (t *toolset) endpoint(base *url.URL, s tool.Server) string {
	text := t.text("the toolset", t.members, "endpoint", true)
	u, err := url.Parse(text)
	if err == nil && strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") {
		u = base.ResolveReference(u)
	}
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https":
		t.fail("its endpoint is not an absolute http or https URL without user info and fragment")
		return ""
	case base.Scheme == "https" && u.Scheme == "http":
		t.fail("its endpoint is without TLS, and the toolset is not")
	case s.Credential != nil && outbound.Origin(u) != outbound.Origin(base):
		t.fail("its endpoint is on another server, which the credential is not for")
	}
	return u.String()
}

// tool reads one tool.
func (t *toolset) tool(which string, item any) tool.Definition {
	object, _ := item.(map[string]any)
	if object == nil {
		t.fail("%s is no object", which)
		return tool.Definition{}
	}
	d := tool.Definition{Name: t.name(which, object), Description: t.text(which, object, "description", true)}
	if d.Name != "" && !operationName.MatchString(d.Name) {
		t.fail("%s has a name with other characters than letters, digits, _, - and .", which)
	}
	if a, stated := object["annotations"]; stated && a != nil {
		if _, isObject := a.(map[string]any); !isObject {
			t.fail("%s has annotations that are no object", which)
		}
	}
	t.text(which, object, "displayScript", false)
	schema, _ := object["inputSchema"].(map[string]any)
	if schema == nil {
		t.fail("%s has no inputSchema that is an object", which)
		return d
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		t.fail("%s has an inputSchema that cannot be kept", which)
	}
	d.InputSchema = raw
	return d
}

func (t *toolset) name(of string, object map[string]any) string {
	name := t.text(of, object, "name", true)
	if len(name) > maxToolsetName {
		t.fail("%s has a name of more than %d bytes", of, maxToolsetName)
	}
	return name
}

// text reads a member that is a string, and not empty if it is required.
func (t *toolset) text(of string, object map[string]any, member string, required bool) string {
	v, stated := object[member]
	if (!stated || v == nil) && !required {
		return ""
	}
	text, isText := v.(string)
	if !isText || required && text == "" {
		t.fail("%s has no %s that is a string", of, member)
	}
	return text
}
