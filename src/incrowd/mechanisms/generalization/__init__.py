"""Make columns coarser until the table withstands everyone named (Machanavajjhala, Gehrke, Götz)."""
