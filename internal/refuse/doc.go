// Package refuse builds the refusals of the engine. Messages are for the model: one
// sentence that names nothing but an HTTP status. Causes are for the operator, and hold
// neither text of a tool nor more of a URL than its origin, since paths and queries of
// webhooks are credentials.
package refuse
