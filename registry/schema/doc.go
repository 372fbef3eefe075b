// Package schema compiles JSON Schemas, closes them, and evaluates values by them.
//
// # Contract
//
// A Compiler turns a definition into a Schema, or reports every Fault of it: what
// cannot be evaluated strictly later is refused now. A Schema never changes and is
// safe for concurrent use. Evaluate returns every violation of a value, at most 100,
// in the order of the protocol; none means that the value is valid. Time and memory
// are bounded by steps that are counted, not measured. Nothing is ever fetched.
//
// Schemas are JSON Schema 2020-12, or draft-07 as far as both give a schema the
// same meaning. A schema is one document: a reference leads to another place of
// the same document or nowhere. Patterns are RE2: \d, \w and \s are ASCII, and
// look-around and back references do not exist.
//
// # Closing
//
// Each object schema that describes a place in the arguments accepts the
// members that it declares and no others. Closing is a transformation from
// schema to schema (see bundler), so both evaluators read the same closed schema.
//
// # Two evaluators
//
// A value is valid when two independent evaluators say so: this package's own, the
// primary one, which also names each violation, and kaptinlin/jsonschema, the
// secondary one, fenced against its known defects. Where only the secondary refuses,
// the value is refused with one violation at the root. The secondary compares with
// the values of an enum one by one: more than 32 plain values at a place are left to
// the primary alone. The work of either on a call is counted in steps, and a call
// that takes too many is refused as too large before the secondary begins.
//
// Most schemas are plain (see package plain). Their arguments need not be decoded: a
// program evaluates the bytes, and what it does not accept goes to the evaluators. When
// such a schema is compiled, the program and both evaluators are compared on generated
// values: where they disagree, the schema is not taken for a plain one.
//
// # The way of a definition
//
// decode → document → lint → metaschema → reference → bundle (closing) → node
// (compiling) → complexity → plain. A value goes through well_formed, evaluate (primary) and
// secondary; finding, collector and message make the violations.
package schema
