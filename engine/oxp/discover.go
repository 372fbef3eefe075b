package oxp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

const (
	maxListBytes = 8 << 20
	maxListTools = 1024
	maxListDepth = 200
)

// The grammars of a definition.
var (
	toolID      = regexp.MustCompile(`^([A-Za-z0-9_]+\.[A-Za-z0-9_]+)(?:@([0-9]+|[0-9]+\.[0-9]+\.[0-9]+))?$`)
	toolName    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	toolVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
)

// definitionMembers are those of a ToolDefinition, which is closed.
var definitionMembers = []string{"id", "name", "description", "version", "input_schema", "output_schema", "requirements"}

// Discover lists the tools of a server. One that cannot be read, or has the id of another, costs no other tool.
func (o *Client) Discover(ctx context.Context, s tool.Server) ([]tool.Definition, error) {
	body, err := o.list(ctx, s)
	if err != nil {
		return nil, err
	}
	found, err := readDefinitions(body)
	if err != nil {
		return nil, &tool.InvalidListError{Err: err}
	}
	return found, nil
}

// readDefinitions reads the whole list.
func readDefinitions(body []byte) ([]tool.Definition, error) {
	if _, err := parser.ReadValue(body, maxListDepth); err != nil {
		return nil, fmt.Errorf("its list of tools is not strict JSON: %w", err)
	}
	object, err := rawjson.ReadMap(body, rawjson.AnyDepth)
	if err != nil {
		return nil, refuse.Reason("its list of tools is no object")
	}
	var items []json.RawMessage
	if raw, there := object["items"]; !there || raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return nil, refuse.Reason("its list of tools has no items that are a list")
	}
	if len(items) > maxListTools {
		return nil, fmt.Errorf("it lists %d tools; expected at most %d", len(items), maxListTools)
	}
	found := make([]tool.Definition, 0, len(items))
	places := map[string]int{} // of ids and exact versions
	for i, item := range items {
		d, id, err := readDefinition(item)
		if err != nil {
			d.Unusable = fmt.Sprintf("tool %d of its list: %v", i+1, err)
		}
		exact := d.Name + "@" + d.Version
		if first, twice := places[exact]; twice && reflect.DeepEqual(found[first], d) {
			continue // the same once more
		}
		for _, name := range slices.Compact([]string{id, exact}) {
			if first, twice := places[name]; twice && id != "" {
				d.Unusable = "its list has several tools of this id"
				found[first].Unusable = d.Unusable
			} else {
				places[name] = len(found)
			}
		}
		found = append(found, d)
	}
	return found, nil
}

// list fetches the list.
func (o *Client) list(ctx context.Context, s tool.Server) ([]byte, error) {
	target, err := oxpEndpoint(s.URL, "tools")
	if err != nil {
		return nil, err
	}
	body, err := o.get(ctx, target, s.Credential, s.Addresses, maxListBytes)
	if err != nil {
		return nil, fmt.Errorf("its list of tools cannot be fetched from %s: %w", outbound.Origin(target), err)
	}
	return body, nil
}

// get fetches JSON. Its error is for the operator; a response that cannot be used is a
// *tool.InvalidListError.
func (o *Client) get(ctx context.Context, target *url.URL, credential *tool.Credential, addresses []string, limit int64) ([]byte, error) {
	body, header, err := o.out.FetchJSON(newOXPRequest(ctx, http.MethodGet, target, nil), credential, addresses, limit)
	if err != nil {
		return nil, err
	}
	if !compatibleVersion(header) {
		return nil, &tool.InvalidListError{Err: refuse.Reason("it answers in another version of the protocol")}
	}
	return body, nil
}

// readDefinition reads one definition, whose JSON is strict already. With an error it has the name and the version,
// and the id, as far as they can be read. A member that is null is absent, but of the output schema: such a tool gives
// nothing.
func readDefinition(item json.RawMessage) (d tool.Definition, id string, err error) {
	raw, err := rawjson.ReadMap(item, rawjson.AnyDepth)
	if err != nil {
		return d, "", errors.New("found no object")
	}
	maps.DeleteFunc(raw, func(name string, value json.RawMessage) bool {
		return name != "output_schema" && string(value) == "null"
	})
	fields := map[string]string{}
	for _, name := range definitionMembers[:4] {
		var text *string
		if value, there := raw[name]; !there || json.Unmarshal(value, &text) != nil || text == nil {
			return d, "", fmt.Errorf("found no %s that is a string", name)
		}
		fields[name] = *text
	}
	parts := toolID.FindStringSubmatch(fields["id"])
	switch {
	case parts == nil:
		return d, "", errors.New("found an id that is not Toolkit.Tool, with @x or @x.y.z behind it or not")
	case !toolName.MatchString(fields["name"]):
		return d, "", errors.New("found a name that is not 1 to 64 letters, digits, _ and -")
	case !toolVersion.MatchString(fields["version"]):
		return d, "", errors.New("found a version that is not x.y.z")
	}
	if stated := parts[2]; stated != "" && stated != fields["version"] && stated+".0.0" != fields["version"] {
		return d, "", errors.New("found an id of another version than its own")
	}
	id, d = fields["id"], tool.Definition{Name: parts[1], Version: fields["version"], Title: fields["name"], Description: fields["description"]}
	for name := range raw {
		if !slices.Contains(definitionMembers, name) {
			return d, id, fmt.Errorf("found the member %s; expected no other than %s", parser.Quote(name),
				strings.Join(definitionMembers, ", "))
		}
	}
	if d.InputSchema, err = objectMember(raw, "input_schema"); err != nil {
		return d, id, err
	}
	if value, there := raw["output_schema"]; there && value[0] == 'n' {
		d.OutputSchema = json.RawMessage(`{"type":"null"}`) // it gives nothing
	} else if d.OutputSchema, err = objectMember(raw, "output_schema"); err != nil {
		return d, id, err
	}
	requirements, err := objectMember(raw, "requirements")
	if err != nil {
		return d, id, err
	}
	d.Unusable, err = unmetRequirements(requirements)
	return d, id, err
}

// objectMember is a member that is an object, or nil.
func objectMember(raw map[string]json.RawMessage, name string) (json.RawMessage, error) {
	value, there := raw[name]
	if there && value[0] != '{' {
		return nil, fmt.Errorf("found %s that is no object", name)
	}
	return value, nil
}

// unmetRequirements says which requirements of a tool cannot be met: its secrets. The
// user is sent if it is known, and the server itself asks for authorizations.
func unmetRequirements(requirements json.RawMessage) (string, error) {
	if requirements == nil {
		return "", nil
	}
	value, err := parser.ReadValue(requirements, maxListDepth)
	if err != nil {
		return "", err
	}
	object, _ := value.(map[string]any) // it begins as one
	dropNulls(object)
	secrets, err := objectList(object, "secrets")
	if err != nil {
		return "", err
	}
	for _, s := range secrets {
		if _, ok := s["id"].(string); !ok {
			return "", errors.New("found a secret without an id among its requirements")
		}
	}
	if _, err := objectList(object, "authorization"); err != nil {
		return "", err
	}
	if _, flag := object["user_id"].(bool); object["user_id"] != nil && !flag {
		return "", errors.New("found a requirement of a user that is no boolean")
	}
	if len(secrets) > 0 {
		return fmt.Sprintf("it needs %d secrets with each call, which Callgate does not have; give them to its server", len(secrets)), nil
	}
	return "", nil
}

// objectList is a member that is a list of objects, or nil.
func objectList(object map[string]any, name string) ([]map[string]any, error) {
	value, there := object[name]
	list, ok := value.([]any)
	all := make([]map[string]any, 0, len(list))
	for _, item := range list {
		one, isObject := item.(map[string]any)
		ok = ok && isObject
		all = append(all, one)
	}
	if there && !ok {
		return nil, fmt.Errorf("found %s among its requirements that is no list of objects", name)
	}
	return all, nil
}
