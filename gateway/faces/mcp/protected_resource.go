package mcp

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// ProtectedResource says where clients get the tokens that this face asks for (RFC 9728). Both
// are called for each request; if one returns nothing, there is no metadata.
type ProtectedResource struct {
	// Base is the URL of the gateway as its clients see it, without a path of its own.
	// It is never taken from a request: its sender could have others send their
	// tokens elsewhere.
	Base func() string
	// Issuer is the issuer of the tokens. One that is no http or https URL is not shown.
	Issuer func() string
}

// metadataPath is the path of the metadata by RFC 9728; the path of the resource may follow.
const metadataPath = "/.well-known/oauth-protected-resource"

// metadata is the document, or not ok.
func (p *ProtectedResource) metadata() (document object, ok bool) {
	if p == nil {
		return nil, false
	}
	base, issuer := p.Base(), p.Issuer()
	if u, err := url.Parse(issuer); base == "" || err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, false
	}
	return object{
		"resource": base + path, "resource_name": "Callgate",
		"authorization_servers": []string{issuer}, "bearer_methods_supported": []string{"header"},
	}, true
}

// mountMetadata mounts the document of RFC 9728 if the face has one. It needs no
// credential.
func (f *Face) mountMetadata(s *server.Server) {
	if f.options.ProtectedResource == nil {
		return
	}
	for _, at := range []string{metadataPath, metadataPath + path} {
		s.Mount(server.Route{Method: http.MethodGet, Path: at, Pool: server.Free, Public: true, Admit: f.admitMetadata,
			Serve: f.serveMetadata, ExtraHeaders: []string{}})
	}
}

// admitMetadata refuses a request for the document if there is none now.
func (f *Face) admitMetadata(*gin.Context) *refusal.Error {
	if _, ok := f.options.ProtectedResource.metadata(); !ok {
		return refusal.New(refusal.NotFound, "There is nothing at this path.")
	}
	return nil
}

// serveMetadata answers with the document.
func (f *Face) serveMetadata(c *gin.Context, _ server.Request) {
	document, _ := f.options.ProtectedResource.metadata()
	body, err := wrapper.Marshal(document)
	if err != nil {
		f.refuse(c, refusal.From(refusal.Any, err))
		return
	}
	c.Header("Cache-Control", "no-store")
	c.Data(http.StatusOK, contentJSON, append(body, '\n'))
}

// challenge is the header WWW-Authenticate of the response to a request without a known
// credential: it says where the document is.
func (f *Face) challenge() string {
	document, ok := f.options.ProtectedResource.metadata()
	if !ok {
		return "Bearer"
	}
	base := strings.TrimSuffix(document["resource"].(string), path)
	return `Bearer resource_metadata="` + base + metadataPath + path + `"`
}
