{{/* The database's addresses come from the Secret, since a URL may name a user; the password is a file of its own. */}}
{{- define "podium.databaseEnv" -}}
- name: PODIUM_AUDIT_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.database.existingSecret }}, key: url}}
- name: PODIUM_AUDIT_KEY_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.database.existingSecret }}, key: key-url}}
- name: PODIUM_AUDIT_DATABASE_OWNER_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.database.existingSecret }}, key: owner-url, optional: true}}
- {name: PODIUM_AUDIT_DATABASE_PASSWORD_FILE, value: /etc/podium/database/password}
{{- end }}

{{- define "podium.databaseVolume" -}}
- name: database
  secret:
    secretName: {{ .Values.database.existingSecret }}
    defaultMode: 0440
    items:
      - {key: password, path: password}
      {{- if .Values.database.hasCa }}
      - {key: ca.crt, path: ca.crt}
      {{- end }}
{{- end }}
