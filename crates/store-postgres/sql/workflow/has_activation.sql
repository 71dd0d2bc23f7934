-- workflow/has_activation
SELECT no FROM surefoot.activation WHERE workflow = $1 AND key = $2
