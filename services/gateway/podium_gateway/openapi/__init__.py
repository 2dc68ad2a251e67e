"""The API's description in OpenAPI 3.1, which `GET /openapi.json` serves."""
